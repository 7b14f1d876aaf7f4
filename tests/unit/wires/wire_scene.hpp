// A folder for the file of a wire, members of the wire, frames whose integrity can be checked, and processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "patience.hpp"
#include "weftio/error.hpp"
#include "wires/member.hpp"

namespace weftio::test {

using wires::mac;
using wires::member;
using frame = std::vector<std::uint8_t>;

using frames = std::vector<frame>;

/// Random numbers below a bound.
class dice {
 public:
    explicit dice(unsigned seed) : random_(seed) {}
    unsigned operator()(unsigned bound) { return static_cast<unsigned>(random_()) % bound; }

 private:
    std::mt19937 random_;
};

constexpr mac everybody{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr std::size_t least_numbered = 14 + sizeof(std::uint64_t);

/// A frame whose bytes all depend on its number and its length.
inline frame numbered(const mac& to, std::uint64_t number, std::size_t bytes)
{
    frame made(std::max(bytes, least_numbered));
    std::copy(to.begin(), to.end(), made.begin());
    std::memcpy(made.data() + 14, &number, sizeof number);
    for (std::size_t at = least_numbered; at < made.size(); ++at)
        made[at] = static_cast<std::uint8_t>(number * 31 + at * 7 + made.size());
    return made;
}

/// The number of such a frame; nothing if the frame is damaged.
inline std::optional<std::uint64_t> number_of(std::span<const std::uint8_t> got)
{
    std::uint64_t number = 0;
    mac to{};
    if (got.size() < least_numbered)
        return std::nullopt;
    std::copy_n(got.begin(), to.size(), to.begin());
    std::memcpy(&number, got.data() + 14, sizeof number);
    const frame wanted = numbered(to, number, got.size());
    return std::ranges::equal(got, wanted) ? std::optional(number) : std::nullopt;
}

/// Takes all frames that have arrived at a member.
inline frames receive_all(member& at)
{
    frames all;
    for (auto got = at.front(); !got.empty(); got = at.front()) {
        all.emplace_back(got.begin(), got.end());
        at.pop();
    }
    at.release();
    return all;
}

inline member::outcome send_now(member& from, const frame& what)
{
    const member::outcome result = from.send(what);
    from.publish();
    return result;
}

/// A process that runs `body` and exits with its result, without destructors; exit status 99: `body` has thrown.
class child {
 public:
    explicit child(const std::function<int()>& body) : process_(::fork())
    {
        if (process_ == 0)
            ::_exit(status_of(body));
    }
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    ~child() { end(SIGKILL); }

    pid_t process() const { return process_; }
    void signal(int number) const { ::kill(process_, number); }
    /// Sends a signal and waits until the process has ended.
    void end(int number)
    {
        if (process_ > 0)
            ::kill(process_, number);
        (void)exit_status();
    }
    /// Waits for the end. Returns the exit status; -1: the process did not exit by itself.
    int exit_status()
    {
        int status = 0;
        if (process_ <= 0 || ::waitpid(std::exchange(process_, -1), &status, 0) < 0 || !WIFEXITED(status))
            return -1;
        return WEXITSTATUS(status);
    }

 private:
    static int status_of(const std::function<int()>& body) noexcept
    try {
        return body();
    } catch (const std::exception& thrown) {
        std::fprintf(stderr, "%s\n", thrown.what());
        return 99;
    }

    pid_t process_;
};

class Wire : public testing::Test {
 protected:
    Wire()
    {
        std::string name = (std::filesystem::temp_directory_path() / "weftio-wire-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~Wire() override
    {
        if (mounted_)
            ::umount2(folder_.c_str(), MNT_DETACH);
        std::filesystem::remove_all(folder_);
    }

    /// Mounts a file system of the given size on the folder. Needs root.
    bool mount(const std::string& bytes)
    {
        mounted_ = ::mount("tmpfs", folder_.c_str(), "tmpfs", 0, ("size=" + bytes).c_str()) == 0;
        return mounted_;
    }

    std::unique_ptr<member> join(const std::string& name = "test") const
    {
        return std::make_unique<member>("port wire:" + name, name, folder_);
    }
    std::string path(const std::string& name = "test") const { return wires::path_of("", name, folder_); }
    const std::string& folder() const { return folder_; }

    /// Expects that joining fails for this reason.
    void expect_refused(errc code, const std::string& words, const std::string& name = "test") const
    {
        try {
            (void)join(name);
            ADD_FAILURE() << "joined";
        } catch (const error& refusal) {
            EXPECT_EQ(refusal.code(), code) << refusal.what();
            EXPECT_NE(std::string(refusal.what()).find(words), std::string::npos) << refusal.what();
        }
    }

 private:
    std::string folder_;
    bool mounted_ = false;
};

} // namespace weftio::test
