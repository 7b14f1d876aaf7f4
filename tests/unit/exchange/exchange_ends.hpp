// Two ends of a TCP exchange that are connected through a listener.
#pragma once

#include <fcntl.h>

#include <filesystem>
#include <future>
#include <numeric>

#include <gmock/gmock.h>

#include "raw_peer.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/exchange.hpp"

namespace weftio::test {

using blob = std::vector<std::uint8_t>;

inline const auto longest = std::chrono::ceil<std::chrono::milliseconds>(patience);
/// `hasty` is the timeout of calls that must end in timed_out; it is long enough for the steps before.
inline const exchange_options patient{.timeout = longest},
    hasty{.timeout = std::chrono::ceil<std::chrono::milliseconds>(patience / 100)};
inline const std::string hasty_text = "within " + std::to_string(hasty.timeout.count()) + " ms";

inline blob numbered(std::size_t bytes)
{
    blob made(bytes);
    std::iota(made.begin(), made.end(), std::uint8_t{1});
    return made;
}

inline void expect_error(errc code, const std::string& words, const std::function<void()>& call)
{
    const error thrown = error_of(call);
    EXPECT_EQ(thrown.code(), code) << thrown.what();
    EXPECT_THAT(thrown.what(), testing::HasSubstr(words));
    EXPECT_THAT(thrown.what(), testing::Not(testing::HasSubstr("\n")));
}

/// A listener, and two ends that are connected through it.
class TcpExchange : public testing::Test {
 protected:
    void connect(const exchange_options& options = patient)
    {
        auto accepted = std::async(std::launch::async, [&] { return listener.accept(options); });
        ends.push_back(tcp_exchange::connect(where, options));
        ends.push_back(accepted.get());
    }
    /// Runs both calls at once.
    template <class Left, class Right>
    void at_both(Left&& left, Right&& right)
    {
        auto other = std::async(std::launch::async, [&] { right(ends[1]); });
        left(ends[0]);
        other.get();
    }
    void swap_works(tcp_exchange& a, tcp_exchange& b)
    {
        auto other = std::async(std::launch::async, [&] { return b.swap(numbered(5)); });
        EXPECT_EQ(a.swap(numbered(3)), numbered(5));
        EXPECT_EQ(other.get(), numbered(3));
    }
    /// An end whose peer sends these words after its hello.
    tcp_exchange accept_from(raw_peer& peer, const std::string& words, const exchange_options& options = patient)
    {
        peer.say(hello('c') + words);
        return listener.accept(options);
    }

    /// Calls a function for every socket at the listener's port, including the listening one.
    void for_each_socket(const std::function<void(int descriptor)>& does)
    {
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            const int descriptor = std::stoi(entry.path().filename());
            sockaddr_in at{};
            socklen_t bytes = sizeof(at);
            if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&at), &bytes) == 0 && at.sin_family == AF_INET &&
                ntohs(at.sin_port) == listener.port())
                does(descriptor);
        }
    }

    /// Makes socket buffers small, so that a long message takes several sends; by default Linux buffers megabytes.
    void give_little_room()
    {
        for_each_socket([](int descriptor) {
            const int bytes = 4096;
            setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
        });
    }

    tcp_listener listener{"127.0.0.1:0"};
    const std::string where = "127.0.0.1:" + std::to_string(listener.port());
    std::vector<tcp_exchange> ends;
};

} // namespace weftio::test
