// Runs holder_peer, the process that memory of a GPU comes from or goes to.
#pragma once

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "devices/backend.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/memory_holder.hpp"

namespace weftio::test {

class holder_process {
 public:
    /// @param folder  of the driver's library; empty: the system's
    holder_process(const std::string& program, std::vector<std::string> words, const std::string& folder)
    {
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()), 0);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends_[1], 3);
        words.insert(words.begin(), program);
        std::vector<char*> arguments, environment;
        for (std::string& each : words)
            arguments.push_back(each.data());
        arguments.push_back(nullptr);
        std::string library = "LD_LIBRARY_PATH=" + folder;
        for (char** each = environ; *each; ++each)
            if (folder.empty() || std::string(*each).find("LD_LIBRARY_PATH=") != 0)
                environment.push_back(*each);
        if (!folder.empty())
            environment.push_back(library.data());
        environment.push_back(nullptr);
        EXPECT_EQ(posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments.data(), environment.data()), 0);
        posix_spawn_file_actions_destroy(&actions);
        close(ends_[1]);
    }
    holder_process(const holder_process&) = delete;
    holder_process& operator=(const holder_process&) = delete;
    ~holder_process() { close(ends_[0]); }

    int socket() const noexcept { return ends_[0]; }
    /// Its exit status, once it has ended.
    int status() const
    {
        int status = -1;
        return waitpid(process_, &status, 0) == process_ && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

 private:
    std::array<int, 2> ends_{};
    pid_t process_ = -1;
};

/// A child that only holds memory, while this process has neither a mapping nor a descriptor of it.
inline void expect_held_elsewhere(const device& gpu)
{
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    const pid_t child = fork();
    if (child == 0) {
        memory_holder::receive(ends[1]).send(ends[1]);
        _exit(0);
    }
    std::size_t bytes = 0;
    {
        const memory_holder made = memory_holder::make(gpu, 1);
        memory here = made.map(gpu);
        bytes = here.bytes();
        here.upload(std::vector<char>(bytes, 'm').data(), bytes);
        made.send(ends[0]);
    }
    const memory_holder again = memory_holder::receive(ends[0]);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
    const memory here = again.map(gpu);
    std::vector<char> seen(here.bytes());
    detail::internals::backend(gpu).download(seen.data(), here.device_address(), seen.size());
    EXPECT_EQ(seen, std::vector<char>(bytes, 'm'));
    close(ends[0]);
    close(ends[1]);
}

} // namespace weftio::test
