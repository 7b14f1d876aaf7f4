// Writes the frames of a port to a pcapng file, as they come and go.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "net/pcapng.hpp"

struct rte_mbuf;

namespace weftio::dpdk {

/// Several ports, also of several processes, may write to one file at a time: each is an interface of its section.
/// Every burst is one append, so that a reader meets whole frames while the file grows.
///
/// - Threads: any engine of the port; one at a time writes.
/// - Errors: after a failed write nothing is written any more, which a log line tells; frames go on.
class frame_dump {
 public:
    /// Opens the file, and empties it unless another port writes to it. A pipe must have a reader.
    /// @param spec  of the port, for errors and as the name of the interface
    /// @throws weftio::error errc::not_found, errc::permission_denied, errc::device_error; errc::in_use another process
    ///         holds the lock of the file for 2 s; errc::invalid_argument others write something else to it
    frame_dump(std::string_view spec, const std::string& path);
    frame_dump(const frame_dump&) = delete;
    frame_dump& operator=(const frame_dump&) = delete;
    ~frame_dump();

    /// Writes frames that have been received.
    void received(const rte_mbuf* const* frames, std::uint16_t count) noexcept;
    /// Writes the frames that `give(frames, count)` takes, and returns how many it took. They are read before.
    template <class Give>
    std::uint16_t sent(rte_mbuf** frames, std::uint16_t count, Give&& give) noexcept
    {
        const std::scoped_lock one_at_a_time(mutex_);
        add(frames, count, net::frame_direction::sent);
        const std::uint16_t taken = give(frames, count);
        write(taken);
        return taken;
    }

 private:
    void open();
    void lock_for_joining();
    void join();
    std::uint32_t count_interfaces();
    void add(const rte_mbuf* const* frames, std::uint16_t count, net::frame_direction direction) noexcept;
    void write(std::uint16_t frames) noexcept;
    void append(std::size_t bytes) noexcept;
    void give_up(int why) noexcept;

    const std::string spec_, path_;
    int descriptor_ = -1; ///< -1: a write has failed
    bool is_file_ = false;
    std::uint32_t interface_ = 0;
    std::mutex mutex_;
    net::pcapng_builder blocks_;
    std::vector<std::size_t> ends_;    ///< in blocks_, of each frame
    std::vector<std::uint8_t> joined_; ///< a frame of several segments
};

} // namespace weftio::dpdk
