// Two connected queue pairs at the seam, nic/rdma_backend.hpp, of two ports on a wire or of one port. The test plays
// their kernels (fake_pair), so that it can write what no kernel of the library writes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "end_memory.hpp"
#include "net/roce_headers.hpp"
#include "nic/rdma_backend.hpp"
#include "ring_at.hpp"
#include "software_nic.hpp"
#include "weftio/device/cqe.h"
#include "wired_ports.hpp"

namespace weftio::test {

/// The content of the collapsed completion.
struct sent_state {
    std::uint32_t position = 0; ///< low 16 bits of the position of the last entry that is done
    std::uint8_t syndrome = 0;
    std::uint8_t vendor = 0;
};

/// A queue pair with a fake kernel: the test writes entries word by word and reads completions.
class fake_pair {
 public:
    static constexpr std::uint32_t receive_segments = 2;

    explicit fake_pair(const port& port, std::uint32_t depth = 64, std::uint32_t receive_depth = 64,
                       protection_domain domain = {}, rdma_service service = rdma_service::reliable,
                       nic::window_options windows = {})
        : send_words_(depth * 16), receive_words_(receive_depth * receive_segments * 4), received_(receive_depth),
          depth_(depth), domain_(domain), windows_(windows)
    {
        freshen();
        queue_ = software_nic(port).make_rdma_queue(rings(), service);
    }
    fake_pair(const fake_pair&) = delete;
    fake_pair& operator=(const fake_pair&) = delete;
    ~fake_pair() { close(); }

    void close()
    {
        if (std::exchange(open_, false))
            queue_->close();
    }
    nic::rdma_queue& nic() const { return *queue_; }
    std::uint32_t number() const { return queue_->number(); }
    void connect(const nic::rdma_connection& to)
    {
        queue_->modify(rdma_state::ready_to_receive, to);
        queue_->modify(rdma_state::ready_to_send, to);
    }
    void restart()
    {
        queue_->modify(rdma_state::reset, {}); // the engine uses the rings no more
        freshen();
        queue_->restart(rings());
    }

    /// Writes an entry. Returns its position.
    std::uint32_t post(std::uint32_t opcode, const std::vector<segment>& body, std::uint32_t immediate = 0,
                       std::uint8_t flags = 0)
    {
        const std::uint32_t position = next_;
        next_ += write_entry(send_words_, position, number(), opcode, body, immediate, flags);
        return position;
    }
    /// Changes a word of an entry.
    void spoil(std::uint32_t position, std::uint32_t word)
    {
        send_words_[(position * 16 + word) % send_words_.size()] ^= weftio_swap32(0x40);
    }
    void push() { push_as(next_); }
    /// Writes any value to the send doorbell record.
    void push_as(std::uint32_t index) { weftio_store_release_sys_u32(&send_record_, weftio_swap32(index & 0xffff)); }
    std::uint32_t posted() const { return next_; }

    /// Posts a receive entry of one or two pieces.
    void post_receive(const std::vector<segment>& pieces)
    {
        const std::uint32_t depth = static_cast<std::uint32_t>(received_.size());
        const std::uint32_t at = receives_posted_++ % depth * receive_segments * 4;
        for (std::uint32_t piece = 0; piece < receive_segments; ++piece)
            for (std::uint32_t word = 0; word < 4; ++word)
                receive_words_[at + piece * 4 + word] = weftio_swap32(
                    (piece < pieces.size() ? pieces[piece] : pointer(0, WEFTIO_LKEY_INVALID, 0)).words[word]);
        weftio_store_release_sys_u32(&receive_record_, weftio_swap32(receives_posted_));
    }
    /// Writes any value to the receive doorbell record.
    void claim_receives(std::uint32_t posted)
    {
        weftio_store_release_sys_u32(&receive_record_, weftio_swap32(posted & 0xffff));
    }
    std::uint32_t receives_waiting() const { return receives_posted_ - receives_read_; }

    /// The next receive completion, if there is one.
    std::optional<weftio_cqe> received()
    {
        const auto depth = static_cast<std::uint32_t>(received_.size());
        weftio_cqe& cqe = received_[receives_read_ % depth];
        if (!weftio_cqe_is_published(weftio_load_acquire_sys_u32(&cqe.publication), receives_read_ / depth))
            return std::nullopt;
        ++receives_read_;
        return cqe;
    }
    sent_state sent() const
    {
        const std::uint32_t publication = weftio_load_acquire_sys_u32(&completion_.publication);
        if (weftio_cqe_opcode(publication) == WEFTIO_CQE_OPCODE_REQUESTER)
            return {.position = weftio_cqe_wqe_counter(publication)};
        const std::uint64_t error = weftio_swap64(completion_.timestamp_be);
        return {weftio_cqe_wqe_counter(publication), static_cast<std::uint8_t>(error),
                static_cast<std::uint8_t>(error >> 8)};
    }
    /// The next failure that was reported to the host; syndrome 0: none.
    nic::send_outcome reported() const
    {
        nic::send_outcome outcome;
        queue_->next(outcome);
        return outcome;
    }

 private:
    void freshen()
    {
        std::fill(received_.begin(), received_.end(), weftio_cqe{});
        for (weftio_cqe& cqe : received_)
            cqe.publication = std::uint32_t{WEFTIO_CQE_NEVER_WRITTEN} << 24;
        completion_.publication = weftio_cqe_publication(0xffff, WEFTIO_CQE_OPCODE_REQUESTER, 0);
        send_record_ = receive_record_ = 0;
        next_ = receives_posted_ = receives_read_ = 0;
    }
    nic::rdma_rings rings()
    {
        nic::rdma_rings rings;
        rings.send.entries = ring_at(send_words_.data(), send_words_.size());
        rings.send.depth = depth_;
        rings.send.dbrec = ring_at(&send_record_);
        rings.send.completion = ring_at(&completion_);
        rings.send.domain = domain_;
        rings.receive = {.entries = ring_at(receive_words_.data(), receive_words_.size()),
                         .depth = static_cast<std::uint32_t>(received_.size()),
                         .segments = receive_segments,
                         .dbrec = ring_at(&receive_record_),
                         .completions = ring_at(received_.data(), received_.size())};
        rings.windows = windows_;
        return rings;
    }

    std::vector<std::uint32_t> send_words_, receive_words_;
    std::vector<weftio_cqe> received_;
    std::uint32_t depth_;
    protection_domain domain_;
    nic::window_options windows_;
    alignas(64) weftio_cqe completion_{};
    std::uint32_t send_record_ = 0, receive_record_ = 0;
    std::uint32_t next_ = 0, receives_posted_ = 0, receives_read_ = 0;
    std::shared_ptr<nic::rdma_queue> queue_;
    bool open_ = true;
};

/// The ports of the ends.
struct ends_at {
    ends_at(bool at_one_port, bool by_packet = false, unsigned engines_of_a_port = 1)
        : one_port(at_one_port), packets(by_packet), engines(engines_of_a_port)
    {}
    bool one_port;    ///< both at the first port; at different engines, if it has several
    bool packets;     ///< port_options::rdma_by_packet
    unsigned engines; ///< of each port
};
inline const std::array<ends_at, 5> all_ends{ends_at(false), ends_at(true), ends_at(true, true),
                                             ends_at(false, false, 2), ends_at(true, false, 2)};
inline std::string name_of(const ends_at& where)
{
    const std::string name = where.packets ? "OnePortByPacket" : where.one_port ? "OnePort" : "TwoPorts";
    return where.engines == 1 ? name : name + "OfSeveralEngines";
}

class two_ends {
 public:
    static constexpr std::size_t memory_bytes = 65536;

    explicit two_ends(ends_at where, std::uint32_t depth = 64, std::uint32_t receive_depth = 64,
                      engine_mode mode = engine_mode::inline_worker, rdma_service service = rdma_service::reliable)
        : ports(mode, where.packets, where.engines), places{0, where.one_port ? 0u : 1u}
    {
        for (unsigned end = 0; end < 2; ++end) {
            memories[end].emplace(at(end), cpu, memory_bytes, region_options{.rights = all_rights});
            queues[end] = std::make_unique<fake_pair>(at(end), depth, receive_depth, protection_domain{}, service);
            homes[end] = queues[end]->nic().dump().engine;
        }
    }

    two_ends(ends_at where, rdma_service service) : two_ends(where, 64, 64, engine_mode::inline_worker, service) {}

    port& at(unsigned end) { return ports.get(places[end]); }
    nic::rdma_connection connection(unsigned end) const
    {
        nic::rdma_connection to;
        to.path.source_mac = mac_of(end);
        to.path.source = address_of(end);
        to.path.destination_mac = mac_of(1 - end);
        to.path.destination = address_of(1 - end);
        to.peer_queue = queues[1 - end]->number();
        to.send_psn = first_psn_of(end);
        to.receive_psn = first_psn_of(1 - end);
        to.timeout = timeout;
        return to;
    }
    static std::array<std::uint8_t, 6> mac_of(unsigned end) { return {2, 0, 0, 0, 0, static_cast<std::uint8_t>(end)}; }
    net::roce_gid address_of(unsigned end) const
    {
        const auto last = static_cast<std::uint8_t>(end + 1);
        if (ipv6)
            return {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
        return net::gid_of_ipv4(std::array<std::uint8_t, 4>{10, 0, 0, last});
    }
    static std::uint32_t first_psn_of(unsigned end) { return 0xfffff0 + end; } ///< PSNs wrap soon
    void connect()
    {
        for (unsigned end = 0; end < 2; ++end)
            queues[end]->connect(connection(end));
    }
    /// Runs the ports until nothing moves.
    void run() { ports.run(); }
    /// Runs the ports until `done`, within `patience`.
    template <class Done>
    bool run_until(Done&& done)
    {
        return ports.run_until(done);
    }
    fake_pair& queue(unsigned end) { return *queues[end]; }
    end_memory& memory(unsigned end) { return *memories[end]; }
    /// The engine of the queue pair, and its unit. The queue pair may be closed.
    unsigned engine(unsigned end) const { return homes[end]; }
    nic::soft::rdma_unit& unit(unsigned end) { return software_nic(at(end)).rdma(engine(end)); }

    bool ipv6 = false;
    std::uint8_t timeout = nic::rdma_connection().timeout;
    wired_ports ports;
    device cpu = device::open("cpu");
    std::array<unsigned, 2> places, homes{};
    std::array<std::optional<end_memory>, 2> memories;
    std::array<std::unique_ptr<fake_pair>, 2> queues;
};

/// Expects that every entry and every packet was counted once. @pre no entry and no packet is in flight
inline void expect_conserved(const nic::rdma_counters& count)
{
    EXPECT_EQ(count.enqueued, count.done + count.skipped + count.failed + count.flushed);
    EXPECT_EQ(count.received, count.filled + count.receive_failed + count.receive_flushed);
    EXPECT_EQ(count.requests, count.executed + count.duplicate_request + count.out_of_sequence + count.not_ready +
                                  count.refused + count.ignored);
}
inline void expect_conserved(const nic::soft::rdma_unit& unit)
{
    const nic::soft::roce_arrivals& all = unit.arrivals();
    EXPECT_EQ(all.claimed.value(),
              all.neighbor.value() + all.delivered.value() + all.malformed.value() + all.wrong_ip_checksum.value() +
                  all.wrong_udp_checksum.value() + all.rx_icrc_encapsulated.value() + all.for_nobody.value() +
                  all.not_from_peer.value() + all.other_mac.value() + all.congestion.value() + all.inbox_full.value());
}

} // namespace weftio::test
