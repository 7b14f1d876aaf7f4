#include "nic/soft/work/rings.hpp"

#include <fmt/format.h>

#include "weftio/error.hpp"

namespace weftio::nic::soft {

void require_cpu(const ring_memory& memory, std::string_view who)
{
    if (memory && !memory.cpu<std::byte>())
        throw error(errc::not_reachable,
                    fmt::format("weftio: {}: its ring is in memory of device {}, which the CPU cannot access; the "
                                "software NIC reads rings by the CPU: allocate it with memory_kind::cpu_device",
                                who, memory.block->owner->name()));
}

namespace {

doorbell_words cpu_words(const doorbell_memory& of)
{
    doorbell_words made;
    if (of.words)
        made.at[0] = of.words.cpu<std::uint64_t>();
    if (of.words && of.count == 2)
        made.at[1] = of.words.behind(doorbell_memory::to_the_next).cpu<std::uint64_t>();
    return made;
}

} // namespace

tx_ring cpu_ring(const send_ring& ring, std::string_view who, std::uint32_t number)
{
    for (const ring_memory* each : {&ring.entries, &ring.dbrec, &ring.completion, &ring.doorbell.words})
        require_cpu(*each, who);
    return {.entries = {.words = ring.entries.cpu<std::uint32_t>(), .depth = ring.depth, .queue = number},
            .dbrec = ring.dbrec.cpu<std::uint32_t>(),
            .doorbell = cpu_words(ring.doorbell),
            .completion = ring.completion.cpu<weftio_cqe>(),
            .horizon_ns = ring.horizon_ns,
            .domain = ring.domain};
}

} // namespace weftio::nic::soft
