#include "nic/soft/soft_region.hpp"

#include <utility>

namespace weftio::nic {

soft_region::soft_region(std::shared_ptr<soft_port> port, const region_request& wanted)
    : port_(std::move(port)), key_(wanted.key)
{
    if (!wanted.block->at.cpu) {
        port_->pull_from(wanted.block->owner);
        place_.emplace_back().block = wanted.block;
        place_.front().lendable = false;
    } else {
        place_ = port_->take_up(wanted.block);
    }
    if (key_ != 0)
        port_->keys().grant(key_, place_.front().lendable);
}

soft_region::~soft_region()
{
    revoke();
    if (place_.front().block->at.cpu)
        port_->let_go(std::move(place_));
    else
        port_->let_go_of_device(std::move(place_));
}

void soft_region::revoke() noexcept
{
    if (key_ != 0)
        port_->forget_key(std::exchange(key_, 0));
}

} // namespace weftio::nic
