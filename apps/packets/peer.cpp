#include "peer.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <vector>

extern char** environ;

namespace weftio::packets {

namespace {

/// Runs ip(8). Returns what it wrote to standard error, and whether it ended well.
std::pair<std::string, bool> run_ip(std::vector<std::string> words)
{
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0)
        return {"no pipe", false};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    ::posix_spawn_file_actions_addclose(&actions, ends[0]);
    words.insert(words.begin(), "ip");
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t child = 0;
    const int error = ::posix_spawnp(&child, "ip", &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    std::string said;
    std::array<char, 512> part{};
    for (ssize_t count; error == 0 && (count = ::read(ends[0], part.data(), part.size())) > 0;)
        said.append(part.data(), static_cast<std::size_t>(count));
    ::close(ends[0]);
    int status = -1;
    if (error != 0 || ::waitpid(child, &status, 0) != child)
        return {"cannot run ip(8): install iproute2", false};
    while (said.ends_with('\n'))
        said.pop_back();
    return {said, WIFEXITED(status) && WEXITSTATUS(status) == 0};
}

void check(const std::string& interface, const address& peer, const std::pair<std::string, bool>& done)
{
    if (!done.second)
        throw std::runtime_error(
            fmt::format("weftio-packets: --peer {}: interface {}: {}", with_prefix(peer), interface, done.first));
}

} // namespace

void set_up_peer(const std::string& interface, const address& peer)
{
    std::vector<std::string> words = {"addr", "replace", with_prefix(peer), "dev", interface};
    if (peer.version == 6)
        words.push_back("nodad"); // it is usable at once
    check(interface, peer, run_ip(words));
    check(interface, peer, run_ip({"link", "set", interface, "up"}));
}

} // namespace weftio::packets
