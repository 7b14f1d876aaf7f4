// The MACs of the hosts from which management datagrams have come lately.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>

#include "net/neighbor_messages.hpp"
#include "net/roce_headers.hpp"

namespace weftio::nic::soft {

/// Answers to such datagrams, and what follows them, need no question for the MAC. The newest replace the oldest, so
/// other hosts cannot fill it. Any thread.
class heard_macs {
 public:
    using clock_time = std::chrono::steady_clock::time_point;
    static constexpr std::chrono::seconds lifetime{30};
    static constexpr std::size_t most = 256;

    void note(const net::roce_gid& host, const net::mac_address& mac, clock_time now)
    {
        const std::scoped_lock lock(mutex_);
        entry* to = find(host);
        if (!to)
            to = &entries_[next_++ % most];
        *to = {.host = host, .mac = mac, .until = now + lifetime};
    }
    std::optional<net::mac_address> mac_of(const net::roce_gid& host, clock_time now)
    {
        const std::scoped_lock lock(mutex_);
        const entry* const found = find(host);
        return found && now < found->until ? std::optional(found->mac) : std::nullopt;
    }

 private:
    struct entry {
        net::roce_gid host{};
        net::mac_address mac{};
        clock_time until{};
    };
    entry* find(const net::roce_gid& host)
    {
        for (entry& each : entries_)
            if (each.until != clock_time{} && each.host == host)
                return &each;
        return nullptr;
    }

    std::mutex mutex_;
    std::array<entry, most> entries_{};
    std::size_t next_ = 0; ///< counts entries that were replaced
};

} // namespace weftio::nic::soft
