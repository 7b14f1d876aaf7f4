#include "nic/soft/soft_region.hpp"

#include <fmt/format.h>

#include <utility>

#include "weftio/error.hpp"

namespace weftio::nic {

soft_region::soft_region(std::shared_ptr<soft_port> port, const region_request& wanted)
    : port_(std::move(port)), key_(wanted.key)
{
    const detail::memory_block& memory = *wanted.block;
    if (!memory.at.cpu)
        throw error(errc::not_reachable,
                    fmt::format("weftio: memory_region: the software NIC of port {} cannot see memory of kind \"{}\"; "
                                "allocate memory_kind::cpu_device",
                                port_->spec(), to_string(memory.kind)));
    place_ = port_->take_up(wanted.block);
    if (key_ != 0)
        port_->keys().grant(key_, place_.front().lendable);
}

soft_region::~soft_region()
{
    revoke();
    port_->let_go(std::move(place_));
}

void soft_region::revoke() noexcept
{
    if (key_ != 0)
        port_->forget_key(std::exchange(key_, 0));
}

} // namespace weftio::nic
