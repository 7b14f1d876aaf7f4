#include "nic/soft/work/completion_unit.hpp"

#include <algorithm>

namespace weftio::nic::soft {

unsigned completion_unit::turn(const turn_budget& budget)
{
    for (completion_ring* const each : news_)
        each->poll_arming();
    news_.clear();
    const std::size_t most = budget.busy ? polls_when_busy : polls_when_idle;
    for (std::size_t left = std::min(most, notifying_.size()); left != 0; --left) {
        last_polled_ = last_polled_ + 1 < notifying_.size() ? last_polled_ + 1 : 0;
        notifying_[last_polled_]->poll_arming();
    }
    return 0;
}

std::uint32_t completion_unit::add(const completion_memory& ring)
{
    std::size_t at = 0;
    while (at != rings_.size() && rings_[at])
        ++at;
    if (at == rings_.size())
        rings_.emplace_back();
    notifying_.reserve(rings_.size());
    news_.reserve(rings_.size());
    rings_[at] = std::make_unique<completion_ring>(ring, static_cast<std::uint32_t>(at + 1), news_);
    if (rings_[at]->has_event())
        notifying_.push_back(rings_[at].get());
    return rings_[at]->number();
}

void completion_unit::remove(std::uint32_t number) noexcept
{
    std::erase(notifying_, rings_[number - 1].get());
    std::erase(news_, rings_[number - 1].get());
    rings_[number - 1] = nullptr;
}

} // namespace weftio::nic::soft
