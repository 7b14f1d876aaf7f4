// Two queue pairs with rings of unusual sizes in memory of the caller, for code that was not written for Weftio.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "end_memory.hpp"
#include "foreign.h"
#include "weftio/weftio.hpp"

namespace weftio::test {

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

class foreign_ends {
 public:
    /// @param ports  ports of the two ends, with engine threads; both the same for shape.one_port
    foreign_ends(const foreign_shape& shape, const std::array<port*, 2>& ports, const std::string& device_spec = "cpu")
        : where_(device::open(device_spec)), shape_(shape),
          arena_(where_.allocate(arena_bytes(), memory_kind::cpu_device)),
          game_memory_(where_.allocate(sizeof(foreign_game), memory_kind::cpu_device))
    {
        for (unsigned end = 0; end < 2; ++end) {
            port& at = *ports[end];
            devices_[end].emplace(at, rdma_device_options{.address = end == 0 ? "10.0.0.1" : "10.0.0.2"});
            memories_[end].emplace(at, where_, FOREIGN_AREA, region_options{.rights = all_rights});
            make_completions(end, at);
            make_pair(end);
        }
        connect();
        game().shared_cq = shape.shared_cq;
        game().rkey = memories_[1]->region.lkey();
        for (unsigned end = 0; end < 2; ++end)
            expected_[end] = memories_[end]->copy();
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
    const device& where() const { return where_; }

    /// Applies the effect of `rounds` rounds to the expected content of both memories.
    void expect_as_simulated(std::uint32_t rounds)
    {
        EXPECT_EQ(game().result, 0u) << "a line of foreign.h; syndrome and reason " << std::hex << game().syndrome;
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
        for (unsigned end = 0; end < 2; ++end)
            EXPECT_TRUE(memories_[end]->copy() == expected_[end]) << "memory of end " << end;
    }

 private:
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
        completions_[end].emplace(at, where_,
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
        pairs_[end].emplace(*devices_[end], where_, completions(end), completions(end),
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
        made.lkey = memories_[end]->region.lkey();
        made.memory = memories_[end]->address();
    }
    void connect()
    {
        const rdma_address addresses[]{pairs_[0]->address(), pairs_[1]->address()};
        for (unsigned end = 0; end < 2; ++end)
            pairs_[end]->connect(addresses[1 - end]);
    }

    device where_;
    const foreign_shape shape_;
    weftio::memory arena_, game_memory_;
    std::array<std::optional<rdma_device>, 2> devices_;
    std::array<std::optional<end_memory>, 2> memories_;
    std::array<std::optional<completion_queue>, 2> completions_;
    std::array<std::optional<queue_pair>, 2> pairs_;
    std::array<std::vector<std::uint8_t>, 2> expected_;
};

} // namespace weftio::test
