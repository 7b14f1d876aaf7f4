// Two queue pairs whose rings the user writes and whose completions it polls, by mlx5's rules alone. The user is a test
// (verbs_ends), or code that was not written for Weftio, with rings of unusual sizes in its own memory (foreign_ends).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "foreign.h"
#include "foreign_crowd.h"
#include "public_pair.hpp"

namespace weftio::test {

/// Opcodes of completions, and syndromes.
namespace reported_as {
inline constexpr std::uint32_t sent = WEFTIO_CQE_OPCODE_REQUESTER, send_error = WEFTIO_CQE_OPCODE_REQUESTER_ERROR,
                               received = WEFTIO_CQE_OPCODE_RESPONDER_SEND,
                               receive_error = WEFTIO_CQE_OPCODE_RESPONDER_ERROR, flushed = WEFTIO_SYNDROME_FLUSHED,
                               malformed = WEFTIO_SYNDROME_LOCAL_QP_OPERATION;
} // namespace reported_as

inline queue_pair_attributes init_attributes(access rights = access::remote_write | access::remote_read |
                                                             access::remote_atomic)
{
    return {.partition_key = std::uint16_t{0xffff}, .rights = rights};
}
inline queue_pair_attributes receive_attributes(const rdma_peer& peer)
{
    queue_pair_attributes with{.peer_address = peer.address,
                               .peer_mac = peer.mac,
                               .path_mtu = 1024,
                               .peer_queue = peer.queue,
                               .receive_psn = 0xfffff0};
    if (peer.service == rdma_service::reliable) {
        with.most_reads_of_peer = std::uint8_t{16};
        with.min_rnr_timer = std::uint8_t{14}; // 1 ms: longer than some engine iterations of a slow build
    }
    return with;
}
inline queue_pair_attributes send_attributes(rdma_service service)
{
    queue_pair_attributes with{.send_psn = 0xfffff0}; // so that PSNs wrap soon
    if (service == rdma_service::reliable) {
        with.most_reads = std::uint8_t{16};
        with.timeout = std::uint8_t{18};
        with.retry_count = std::uint8_t{7};
        with.rnr_retry = std::uint8_t{7};
    }
    return with;
}

/// A queue pair, and the functions that post to it.
class posted_pair {
 public:
    posted_pair(const rdma_device& at, const device& device, const completion_queue& sends,
                const completion_queue& receives, const queue_pair_options& options = {})
        : options_(options), pair_(at, device, sends, receives, options)
    {}
    queue_pair* operator->() { return &pair_; }
    queue_pair& operator*() { return pair_; }

    /// Writes an entry and commits it. Returns the index of its first block.
    std::uint32_t post(std::uint32_t opcode, const std::vector<segment>& body, std::uint8_t flags = WEFTIO_CE_ALWAYS,
                       std::uint32_t immediate = 0)
    {
        const std::uint32_t index = write(opcode, body, flags, immediate);
        commit();
        return index;
    }
    std::uint32_t write(std::uint32_t opcode, const std::vector<segment>& body, std::uint8_t flags = WEFTIO_CE_ALWAYS,
                        std::uint32_t immediate = 0)
    {
        const std::span ring(static_cast<std::uint32_t*>(pair_.send_ring()), std::size_t{options_.send_blocks} * 16);
        const std::uint32_t index = sends_;
        sends_ += write_entry(ring, index, pair_.number(), opcode, body, immediate, flags);
        return index;
    }
    void commit() { weftio_store_release_sys_u32(record() + 1, weftio_swap32(sends_ & 0xffff)); }
    void post_receive(const segment& piece)
    {
        auto* const words = static_cast<std::uint32_t*>(pair_.receive_ring());
        const std::uint32_t each = options_.receive_stride / 4, at = receives_++ % options_.receive_entries * each;
        for (std::uint32_t word = 0; word < 4; ++word)
            words[at + word] = weftio_swap32(piece.words[word]);
        if (each > 4)
            words[at + 5] = weftio_swap32(WEFTIO_LKEY_INVALID);
        weftio_store_release_sys_u32(record(), weftio_swap32(receives_ & 0xffff));
    }
    std::uint32_t* record() const { return static_cast<std::uint32_t*>(pair_.record()); }
    /// Moves it to RESET, and starts posting from index 0 again.
    void reset()
    {
        pair_.modify(rdma_state::reset);
        forget();
    }
    void forget()
    {
        record()[0] = record()[1] = 0;
        sends_ = receives_ = 0;
    }

 private:
    const queue_pair_options options_;
    queue_pair pair_;
    std::uint32_t sends_ = 0, receives_ = 0;
};

struct verbs_shape {
    rdma_service service = rdma_service::reliable;
    bool one_port = false;
    completion_queue_options completions{.entries = 256};
    queue_pair_options pair{};
    engine_mode mode = engine_mode::inline_worker;
    std::string device_spec = "cpu";
    unsigned engines = 1; ///< of each port
};

/// A test moves the pairs through the states of verbs, posts, and polls. In inline mode only turns run the engines.
class verbs_ends : public ends_on_wire, public public_ends {
 public:
    static constexpr std::size_t memory_bytes = 1 << 18;

    explicit verbs_ends(const verbs_shape& shape = {})
        : ends_on_wire{wired_ports(shape.mode, false, shape.engines)},
          public_ends(ports.of_ends(shape.one_port), shape.mode, shape.device_spec, memory_bytes), shape_(shape)
    {
        shape_.pair.service = shape.service;
        for (unsigned end = 0; end < 2; ++end) {
            completions[end].emplace(at(end), cpu, shape.completions);
            pairs[end].emplace(*devices[end], cpu, *completions[end], *completions[end], shape_.pair);
        }
    }

    port& at(unsigned end) { return ports.get(shape_.one_port ? 0 : end); }
    posted_pair& pair(unsigned end) { return *pairs[end]; }
    rdma_peer self(unsigned end) { return pair(end)->address().peer(); }
    /// Connects both queue pairs. @pre both are in RESET
    void connect(rdma_state to = rdma_state::ready_to_send)
    {
        for (unsigned end = 0; end < 2; ++end)
            connect(end, to);
    }
    void connect(unsigned end, rdma_state to)
    {
        pair(end)->modify(rdma_state::init, init_attributes());
        pair(end)->modify(rdma_state::ready_to_receive, receive_attributes(self(1 - end)));
        if (to != rdma_state::ready_to_receive)
            pair(end)->modify(rdma_state::ready_to_send, send_attributes(shape_.service));
        if (to == rdma_state::send_queue_drained)
            pair(end)->modify(to);
    }
    /// In inline mode: runs the ports until nothing moves, 10,000 times at most: RNR retries may never end.
    void run() { ports.run(most_turns); }
    template <class Done>
    bool run_until(Done&& done)
    {
        return ports.run_until(done, most_turns);
    }
    /// Runs the ports and polls the completions of an end.
    std::vector<completion> poll(unsigned end)
    {
        run();
        std::vector<completion> all(std::size_t{1} << 12);
        all.resize(completions[end]->poll(all));
        return all;
    }
    std::uint32_t send(unsigned end, std::uint32_t bytes, std::uint8_t flags = WEFTIO_CE_ALWAYS)
    {
        return pair(end).post(WEFTIO_OPCODE_SEND, {memory(end).local(0, bytes)}, flags);
    }
    std::uint32_t write(unsigned end, std::uint32_t bytes, std::uint8_t flags = WEFTIO_CE_ALWAYS)
    {
        return pair(end).post(WEFTIO_OPCODE_RDMA_WRITE, {memory(1 - end).remote_at(0), memory(end).local(0, bytes)},
                              flags);
    }
    void receive(unsigned end, std::uint32_t bytes = 4096) { pair(end).post_receive(memory(end).local(0, bytes)); }
    /// Posts an entry with an unknown opcode.
    std::uint32_t post_bad(unsigned end) { return pair(end).post(0x55, {}); }

    device& cpu = where; ///< where the rings are
    std::array<std::optional<completion_queue>, 2> completions;
    std::array<std::optional<posted_pair>, 2> pairs;

 private:
    static constexpr std::size_t most_turns = 10'000;

    verbs_shape shape_;
};

/// The fields of a completion that tests compare.
struct reported {
    std::uint32_t opcode, index, syndrome;
    bool operator==(const reported&) const = default;
};
inline void PrintTo(const reported& what, std::ostream* out)
{
    *out << "opcode " << what.opcode << " index " << what.index << " syndrome " << what.syndrome;
}
inline std::vector<reported> reported_by(const std::vector<completion>& all)
{
    std::vector<reported> short_ones;
    for (const completion& each : all)
        short_ones.push_back({each.opcode, each.index, each.syndrome});
    return short_ones;
}

struct foreign_shape {
    const char* name;
    bool one_port;
    std::uint32_t sq_blocks, rq_count, rq_stride, cq_count, cq_stride;
    bool shared_cq; ///< one completion queue for both ends, sends and receives; with one port only
};
inline void PrintTo(const foreign_shape& shape, std::ostream* out)
{
    *out << shape.name;
}

/// Even rings of one entry are enough, because receives are posted one at a time and there are few completions.
inline constexpr foreign_shape foreign_shapes[]{
    {"usual", false, 64, 64, 16, 256, 64, false},     {"one_of_each", false, 1, 1, 16, 2, 64, false},
    {"wide", false, 2, 2, 512, 4, 128, false},        {"shared", true, 32, 16, 64, 128, 64, true},
    {"shared_wide", true, 128, 1, 32, 64, 128, true}, {"deep", false, 32768, 4, 16, 32768, 64, false},
};

/// For foreign_crowd.h.
inline constexpr foreign_shape foreign_crowd_shapes[]{{"usual", false, 64, 64, 16, 256, 64, false},
                                                      {"short", false, 2, 16, 64, 64, 128, false},
                                                      {"shared", true, 32, 16, 16, 128, 64, true}};

/// Code that was not written for Weftio posts and polls, in an arena of memory of the caller that holds all rings.
class foreign_ends : public public_ends {
 public:
    /// @param ports  ports of the two ends, with engine threads; both the same for shape.one_port
    foreign_ends(const foreign_shape& shape, const std::array<port*, 2>& ports, const std::string& device_spec = "cpu")
        : public_ends(ports, engine_mode::thread, device_spec, FOREIGN_AREA), shape_(shape),
          arena_(where.allocate(arena_bytes(), memory_kind::cpu_device)),
          game_memory_(where.allocate(sizeof(foreign_game), memory_kind::cpu_device))
    {
        for (unsigned end = 0; end < 2; ++end) {
            make_completions(end, *ports[end]);
            make_pair(end);
        }
        connect();
        game().shared_cq = shape.shared_cq;
        game().rkey = memories[1]->region.lkey();
        for (unsigned end = 0; end < 2; ++end)
            expected_[end] = memories[end]->copy();
    }

    foreign_game& game() const { return *static_cast<foreign_game*>(game_memory_.cpu_address()); }
    foreign_game* game_on_device() const { return static_cast<foreign_game*>(game_memory_.device_address()); }
    /// Moves both queue pairs to RESET and connects them again, with rings from index 0. Completion indices continue.
    void start_again()
    {
        for (auto& each : pairs_)
            each->modify(rdma_state::reset);
        for (unsigned end = 0; end < 2; ++end) {
            std::memset(static_cast<std::byte*>(arena_.cpu_address()) + records + end * 8, 0, 8);
            foreign_end& at = game().ends[end];
            at.sq_next = at.sq_done = at.rq_next = at.rq_done = 0;
        }
        connect();
    }
    queue_pair& pair(unsigned end) { return *pairs_[end]; }
    completion_queue& completions(unsigned end) { return *completions_[shape_.shared_cq ? 0 : end]; }

    /// Applies the effect of `rounds` rounds to the expected content of both memories.
    void expect_as_simulated(std::uint32_t rounds)
    {
        std::uint32_t receives = 0;
        for (std::uint32_t round = 0; round < rounds; ++round) {
            const foreign_move move = foreign_move_of(round);
            auto &ours = expected_[0], &theirs = expected_[1];
            if (move.kind == FOREIGN_READ)
                std::copy_n(theirs.begin() + move.from, move.bytes, ours.begin() + move.to);
            else if (move.kind == FOREIGN_SEND)
                std::copy_n(ours.begin() + move.from, move.bytes,
                            theirs.begin() + FOREIGN_AREA / 2 + receives % FOREIGN_SLOTS * 2048);
            else
                std::copy_n(ours.begin() + move.from, move.bytes, theirs.begin() + move.to);
            receives += move.kind == FOREIGN_SEND || move.kind == FOREIGN_WRITE_IMM;
        }
        expect_content();
    }
    /// The same for what the posters of foreign_crowd.h post.
    void expect_as_posted(std::uint32_t rounds)
    {
        for (std::uint32_t position = 0; position < rounds; ++position) {
            const foreign_move message = foreign_message_of(position);
            std::copy_n(expected_[0].begin() + message.from, message.bytes, expected_[1].begin() + message.to);
        }
        expect_content();
        EXPECT_EQ(pair(0).counters().done, rounds);
        EXPECT_EQ(pair(0).counters().failed, 0u);
    }

 private:
    void expect_content() const
    {
        EXPECT_EQ(game().result, 0u) << "a line of foreign.h or foreign_crowd.h; syndrome and reason " << std::hex
                                     << game().syndrome;
        for (unsigned end = 0; end < 2; ++end)
            EXPECT_TRUE(memories[end]->copy() == expected_[end]) << "memory of end " << end;
    }

    static constexpr std::size_t records = 0; ///< offset of the doorbell records in the arena
    std::size_t rings_begin() const { return 64; }
    std::size_t completion_bytes() const { return std::size_t{shape_.cq_count} * shape_.cq_stride; }
    std::size_t send_bytes() const { return std::size_t{shape_.sq_blocks} * 64; }
    std::size_t receive_bytes() const { return std::size_t{shape_.rq_count} * shape_.rq_stride; }
    /// The receive ring lies before the send ring, as in libmlx5.
    std::size_t end_bytes() const { return (completion_bytes() + receive_bytes() + send_bytes() + 63) / 64 * 64; }
    std::size_t arena_bytes() const { return rings_begin() + 2 * end_bytes(); }
    std::size_t begin_of(unsigned end) const { return rings_begin() + end * end_bytes(); }
    template <class T>
    T* on_device(std::size_t offset) const
    {
        return reinterpret_cast<T*>(static_cast<std::byte*>(arena_.device_address()) + offset);
    }

    void make_completions(unsigned end, port& at)
    {
        if (shape_.shared_cq && end == 1)
            return;
        auto* const ring = static_cast<std::uint8_t*>(arena_.cpu_address()) + begin_of(end);
        for (std::uint32_t entry = 0; entry < shape_.cq_count; ++entry)
            ring[(entry + 1) * shape_.cq_stride - 1] = 0xf1;
        completions_[end].emplace(at, where,
                                  completion_queue_options{.entries = shape_.cq_count,
                                                           .entry_bytes = shape_.cq_stride,
                                                           .ring = {&arena_, begin_of(end)},
                                                           .record = {&arena_, records + 16 + end * 8}});
        foreign_cq& cq = game().cqs[end];
        cq.ring = on_device<unsigned char>(begin_of(end));
        cq.count = shape_.cq_count;
        cq.stride = shape_.cq_stride;
        cq.record = on_device<foreign_u32>(records + 16 + end * 8);
    }
    void make_pair(unsigned end)
    {
        const std::size_t receives = begin_of(end) + completion_bytes(), sends = receives + receive_bytes();
        pairs_[end].emplace(*devices[end], where, completions(end), completions(end),
                            queue_pair_options{.send_blocks = shape_.sq_blocks,
                                               .receive_entries = shape_.rq_count,
                                               .receive_stride = shape_.rq_stride,
                                               .user_index = 77 + end,
                                               .send_ring = {&arena_, sends},
                                               .receive_ring = {&arena_, receives},
                                               .record = {&arena_, records + end * 8}});
        foreign_end& made = game().ends[end];
        made.sq = on_device<foreign_u32>(sends);
        made.sq_blocks = shape_.sq_blocks;
        made.rq = on_device<unsigned char>(receives);
        made.rq_count = shape_.rq_count;
        made.rq_stride = shape_.rq_stride;
        made.record = on_device<foreign_u32>(records + end * 8);
        made.doorbell = reinterpret_cast<foreign_u64*>(pairs_[end]->doorbell());
        made.qpn = pairs_[end]->number();
        made.lkey = memories[end]->region.lkey();
        made.memory = memories[end]->address();
    }
    void connect()
    {
        for (unsigned end = 0; end < 2; ++end) {
            pairs_[end]->modify(rdma_state::init, init_attributes());
            pairs_[end]->modify(rdma_state::ready_to_receive, receive_attributes(pairs_[1 - end]->address().peer()));
            pairs_[end]->modify(rdma_state::ready_to_send, send_attributes(rdma_service::reliable));
        }
    }

    const foreign_shape shape_;
    weftio::memory arena_, game_memory_;
    std::array<std::optional<completion_queue>, 2> completions_;
    std::array<std::optional<queue_pair>, 2> pairs_;
    std::array<std::vector<std::uint8_t>, 2> expected_;
};

/// On the software NIC: at two ports on a wire, or both at one of them.
class wired_foreign_ends : private ends_on_wire, public foreign_ends {
 public:
    explicit wired_foreign_ends(const foreign_shape& shape, const std::string& device_spec = "cpu")
        : ends_on_wire{wired_ports(engine_mode::thread)},
          foreign_ends(shape, ports.of_ends(shape.one_port), device_spec)
    {}
};

} // namespace weftio::test
