#include "nic/soft/soft_region.hpp"

#include <utility>

namespace weftio::nic::soft {

soft_region::soft_region(std::shared_ptr<soft_port> port, const region_request& wanted)
    : port_(std::move(port)), memory_(port_->take_up(wanted.block)), key_(wanted.process_key), granted_(key_ != 0)
{
    if (granted_)
        port_->keys().grant(key_, memory_.front().zero_copy);
}

soft_region::~soft_region()
{
    revoke();
    port_->let_go(std::move(memory_));
}

void soft_region::revoke() noexcept
{
    if (!std::exchange(granted_, false))
        return;
    port_->forget_key(key_);
    port_->leave_copies(*memory_.front().block);
}

void soft_region::renew(const region_request& now) noexcept
{
    key_ = now.process_key;
    granted_ = true;
    port_->keys().grant(key_, memory_.front().zero_copy);
}

} // namespace weftio::nic::soft
