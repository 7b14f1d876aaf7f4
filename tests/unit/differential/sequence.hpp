// The host side of sequences: initial state, and the differences of two outcomes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <fmt/format.h>

#include "sequence_kernels.h"

namespace weftio::test {

static_assert(std::is_trivially_copyable_v<sequence_world>);

/// Sets up empty rings whose indices begin at `start`, and the steps of the sequence.
/// @param clock  clock of the device
inline void prepare(sequence_world& world, std::span<const sequence_step> steps, std::uint32_t start,
                    const weftio_dev_clock* clock)
{
    std::memset(&world, 0, sizeof world);
    auto begin = [&](weftio_dev_eth_txq& txq, sequence_send_ring& ring, weftio_dev_control& control) {
        txq.queue.ring = {.segments = ring.segments,
                          .mask = SEQUENCE_DEPTH - 1,
                          .queue = 7,
                          .checksums = 0,
                          .ready = start,
                          .dbrec = &ring.dbrec,
                          .doorbell = &ring.doorbell,
                          .completion = &ring.completion,
                          .filled = ring.filled,
                          .reserved = start,
                          .asked = start,
                          .completed = start,
                          .commits = 0,
                          .refreshing = 0,
                          .needs_flush = 0};
        txq.queue.control = &control;
        txq.queue.clock = clock;
        ring.completion.publication = weftio_cqe_publication(start - 1, WEFTIO_CQE_OPCODE_REQUESTER, 0);
    };
    begin(world.strong, world.outcome.strong, world.strong_control);
    begin(world.weak, world.outcome.weak, world.weak_control);
    for (weftio_cqe& cqe : world.outcome.completions)
        cqe.publication = WEFTIO_CQE_NEVER_WRITTEN << 24;
    weftio_dev_eth_rxq& rxq = world.receive;
    rxq.completions = {world.outcome.completions, SEQUENCE_DEPTH - 1,
                       static_cast<std::uint32_t>(std::countr_zero(SEQUENCE_DEPTH))};
    rxq.dbrec = &world.outcome.receive_dbrec;
    rxq.control = &world.receive_control;
    rxq.clock = clock;
    rxq.slots = world.frame; // kernels compute addresses only, and read no byte
    rxq.stride_bytes = rxq.slot_bytes = 128;
    rxq.received = rxq.released = world.outcome.arrived = start;
    weftio_dev_post_receive(rxq.dbrec, start + SEQUENCE_DEPTH);
    for (std::size_t byte = 0; byte < std::size(world.frame); ++byte)
        world.frame[byte] = static_cast<std::uint8_t>(byte * 7 + 1);
    world.count = static_cast<std::uint32_t>(std::min<std::size_t>(steps.size(), SEQUENCE_STEPS));
    std::copy_n(steps.begin(), world.count, world.steps);
}

/// Name of word `at` of an outcome, for messages.
inline std::string place_of(const sequence_world& world, std::size_t at)
{
    struct part {
        const char* name;
        std::size_t offset, bytes;
    };
#define WEFTIO_TEST_PART(NAME)                                                                                         \
    part                                                                                                               \
    {                                                                                                                  \
#NAME, offsetof(sequence_outcome, NAME), sizeof(sequence_outcome::NAME)                                        \
    }
    static constexpr std::array parts{WEFTIO_TEST_PART(strong),      WEFTIO_TEST_PART(weak),
                                      WEFTIO_TEST_PART(completions), WEFTIO_TEST_PART(receive_dbrec),
                                      WEFTIO_TEST_PART(arrived),     WEFTIO_TEST_PART(results),
                                      WEFTIO_TEST_PART(ends)};
#undef WEFTIO_TEST_PART
    const std::size_t byte = at * 4;
    const auto found = std::ranges::find_if(
        parts, [&](const part& each) { return byte >= each.offset && byte < each.offset + each.bytes; });
    const std::string name = found == parts.end() ? "padding" : found->name;
    const std::size_t word = found == parts.end() ? at : (byte - found->offset) / 4;
    if (name == "results")
        return fmt::format("step {} (operation {}), word {}", word / SEQUENCE_RESULTS,
                           world.steps[word / SEQUENCE_RESULTS].operation, word % SEQUENCE_RESULTS);
    if (name == "strong" || name == "weak")
        return word < SEQUENCE_DEPTH * 16
                   ? fmt::format("{} entry {}, word {}", name, word / 16, word % 16)
                   : fmt::format("{} behind its entries, word {}", name, word - SEQUENCE_DEPTH * 16);
    return fmt::format("{}, word {}", name, word);
}

/// A line for each word that differs, at most sixteen; empty if all are equal.
inline std::string difference(const sequence_world& wanted, const sequence_world& got)
{
    constexpr std::size_t words = sizeof(sequence_outcome) / 4, most = 16;
    std::string text;
    std::size_t lines = 0;
    for (std::size_t at = 0; at < words && lines < most; ++at) {
        std::uint32_t a = 0, b = 0;
        std::memcpy(&a, reinterpret_cast<const std::byte*>(&wanted.outcome) + at * 4, 4);
        std::memcpy(&b, reinterpret_cast<const std::byte*>(&got.outcome) + at * 4, 4);
        if (a != b) {
            text += fmt::format("{}: {:08x}, not {:08x}\n", place_of(wanted, at), b, a);
            ++lines;
        }
    }
    return text;
}

} // namespace weftio::test
