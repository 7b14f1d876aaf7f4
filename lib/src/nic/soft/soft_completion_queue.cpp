#include "nic/soft/soft_completion_queue.hpp"

#include <fmt/format.h>

#include <utility>

#include "weftio/error.hpp"

namespace weftio::nic::soft {

soft_completion_queue::soft_completion_queue(std::shared_ptr<soft_port> port, const completion_memory& memory)
    : at_port(std::move(port)), memory_(memory)
{
    require_cpu(memory.entries, "completion_queue");
    require_cpu(memory.record, "completion_queue");
    between_turns([&] {
        completion_unit& all = port_->engines().completions(0);
        ring_ = &all.find(all.add(memory_));
    });
}

soft_completion_queue::~soft_completion_queue()
{
    if (may_end())
        between_turns([&] { port_->engines().completions(0).remove(ring_->number()); });
}

namespace {

void require_resizable(std::uint32_t number, std::uint32_t depth, completion_ring::resize_check found)
{
    using enum completion_ring::resize_check;
    switch (found) {
        case enough: return;
        case no_end:
            throw error(errc::in_use, fmt::format("weftio: completion_queue {}: its ring is full, without space for "
                                                  "the completion that ends it; consume one first",
                                                  number));
        case too_small:
            throw error(errc::invalid_argument, fmt::format("weftio: completion_queue {}: more than {} completions are "
                                                            "not consumed; consume them, or use a larger ring",
                                                            number, depth));
        case overrun: break;
    }
    throw error(
        errc::closed,
        fmt::format("weftio: completion_queue {}: it has overrun and gets no more completions; create a new one",
                    number));
}

} // namespace

ring_end soft_completion_queue::resize(const completion_memory& to)
{
    require_cpu(to.entries, "completion_queue");
    ring_end found;
    between_turns([&] {
        require_resizable(number(), to.depth, ring_->check_resize(to.depth));
        found = ring_->resize(to);
    });
    memory_.entries = to.entries;
    memory_.depth = to.depth;
    memory_.entry_bytes = to.entry_bytes;
    return found;
}

inline_turn soft_completion_queue::turn() noexcept
{
    if (!is_inline())
        return {};
    return {.turn = [](void* context) { static_cast<soft_completion_queue*>(context)->port_->turn(); },
            .context = this};
}

} // namespace weftio::nic::soft
