// Queue pair 1 of a port: management datagrams leave and arrive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cm/connection.hpp"
#include "net/neighbor_messages.hpp"
#include "net/roce_rules.hpp"
#include "weftio/completion_queue.hpp"
#include "weftio/memory.hpp"
#include "weftio/queue_pair.hpp"

namespace weftio::connections {

/// One thread at a time. Never blocks.
class management_queue {
 public:
    /// @throws weftio::error errc::in_use another queue pair of the port has management datagrams; errc::out_of_memory;
    ///         errc::not_supported the port's NIC keeps them to itself
    /// @param on_arrival  called when datagrams have come since the last receive(), by the thread of an engine
    management_queue(const port& port, const rdma_device& at, std::function<void()> on_arrival);
    management_queue(const management_queue&) = delete;
    management_queue& operator=(const management_queue&) = delete;
    /// Waits until the NIC has sent what was posted, a second at most: the last word to a peer is often one.
    ~management_queue();

    /// Whether datagrams can be sent from this address.
    bool has(const net::roce_gid& local) const noexcept { return index_of(local) < gids_.size(); }
    /// A datagram that finds no room is lost, as it may be on its way.
    void send(const cm::path& to, const net::mac_address& mac, std::span<const std::uint8_t, cm::mad_bytes> bytes);
    /// Calls each(path, bytes) for those that have come. Those that are not from queue pair 1 are ignored.
    template <class Each>
    void receive(Each&& each)
    {
        std::array<completion, 32> some;
        arrivals_.arm();
        for (std::size_t count; (count = arrivals_.poll(some)) != 0;)
            for (const completion& one : std::span(some).first(count)) {
                const std::span<const std::uint8_t> bytes = bytes_of(one);
                if (!bytes.empty())
                    each(path_of(one), bytes);
                post_receive();
            }
    }

 private:
    static constexpr std::uint32_t entries = 256, blocks_of_an_entry = 2;
    /// Of a receive: the place of the IP header, and the datagram. A longer one would fail the queue pair.
    static constexpr std::uint32_t header_bytes = 40, receive_bytes = header_bytes + net::largest_path_mtu;
    static constexpr std::size_t sends_at = entries * receive_bytes, all_bytes = sends_at + entries * cm::mad_bytes;

    std::uint8_t* at(std::size_t offset) const noexcept;
    std::size_t index_of(const net::roce_gid& local) const noexcept;
    std::uint8_t* receive_at(std::uint32_t index) const noexcept { return at(index % entries * receive_bytes); }
    std::span<const std::uint8_t> bytes_of(const completion& of) const noexcept;
    cm::path path_of(const completion& of) const noexcept;
    void post_receive() noexcept;
    bool has_room();
    void count_sent();

    const std::vector<net::roce_gid> gids_;
    const device cpu_;
    memory bytes_;
    const memory_region region_;
    completion_queue sent_, arrivals_;
    queue_pair pair_;
    std::uint32_t received_ = 0, posted_ = 0, done_ = 0; ///< receives posted; datagrams sent, and of these, done
};

} // namespace weftio::connections
