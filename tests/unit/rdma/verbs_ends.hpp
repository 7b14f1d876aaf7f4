// Two queue pairs; a test moves them through the states of verbs, posts, and polls. Only turns run the engines.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "two_ends.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

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
        const auto segments = static_cast<std::uint32_t>(body.size() + 1);
        const std::uint32_t index = sends_;
        std::vector<segment> all{
            {{opcode | (index & 0xffff) << 8, pair_.number() << 8 | segments, std::uint32_t{flags}, immediate}}};
        all.insert(all.end(), body.begin(), body.end());
        auto* const words = static_cast<std::uint32_t*>(pair_.send_ring());
        for (std::uint32_t at = 0; at < all.size() * 4; ++at)
            weftio_store_relaxed_u32(&words[(index * 16 + at) % (options_.send_blocks * 16)],
                                     weftio_swap32(all[at / 4].words[at % 4]));
        sends_ += (segments + 3) / 4;
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
};

class verbs_ends {
 public:
    static constexpr std::size_t memory_bytes = 1 << 18;

    explicit verbs_ends(const verbs_shape& shape = {})
        : ports(shape.mode), cpu(device::open(shape.device_spec)), shape_(shape)
    {
        shape_.pair.service = shape.service;
        for (unsigned end = 0; end < 2; ++end) {
            devices[end].emplace(at(end),
                                 rdma_device_options{.address = end == 0 ? "10.0.0.1" : "10.0.0.2",
                                                     .application_turns = shape.mode == engine_mode::inline_worker});
            memories[end].emplace(at(end), cpu, memory_bytes, region_options{.rights = all_rights});
            completions[end].emplace(at(end), cpu, shape.completions);
            pairs[end].emplace(*devices[end], cpu, *completions[end], *completions[end], shape_.pair);
        }
    }

    port& at(unsigned end) { return ports.get(shape_.one_port ? 0 : end); }
    posted_pair& pair(unsigned end) { return *pairs[end]; }
    end_memory& memory(unsigned end) { return *memories[end]; }
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
    void run()
    {
        for (unsigned still = 0, turns = 0; still < 8 && turns < 10000; ++turns)
            still = ports.get(0).turn() + ports.get(1).turn() != 0 ? 0 : still + 1;
    }
    template <class Done>
    bool run_until(Done&& done)
    {
        for (auto end = std::chrono::steady_clock::now() + patience; !done() && std::chrono::steady_clock::now() < end;)
            run();
        return done();
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

    wired_ports ports;
    device cpu;
    std::array<std::optional<rdma_device>, 2> devices;
    std::array<std::optional<end_memory>, 2> memories;
    std::array<std::optional<completion_queue>, 2> completions;
    std::array<std::optional<posted_pair>, 2> pairs;

 private:
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

} // namespace weftio::test
