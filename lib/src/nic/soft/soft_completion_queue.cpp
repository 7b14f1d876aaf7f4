#include "nic/soft/soft_completion_queue.hpp"

#include <utility>

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

inline_turn soft_completion_queue::turn() noexcept
{
    if (!is_inline())
        return {};
    return {.turn = [](void* context) { static_cast<soft_completion_queue*>(context)->port_->turn(); },
            .context = this};
}

} // namespace weftio::nic::soft
