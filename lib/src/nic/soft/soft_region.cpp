#include "nic/soft/soft_region.hpp"

#include <fmt/format.h>

#include "weftio/error.hpp"

namespace weftio::nic {

soft_region::soft_region(std::shared_ptr<soft_port> port, std::shared_ptr<const detail::memory_block> block,
                         region_use use)
    : port_(std::move(port))
{
    const detail::memory_block& memory = *block;
    if (!memory.at.cpu)
        throw error(errc::not_reachable,
                    fmt::format("weftio: memory_region: the software NIC of port {} cannot see memory of kind \"{}\"; "
                                "allocate memory_kind::cpu_device",
                                port_->spec(), to_string(memory.kind)));
    place_ = port_->take_up(std::move(block));
    if (use == region_use::own)
        return;
    port_->engines().between_all_turns([&] {
        key_ = port_->keys().add({.cpu = static_cast<std::byte*>(memory.at.cpu),
                                  .device_base = reinterpret_cast<std::uint64_t>(memory.at.device),
                                  .bytes = memory.bytes,
                                  .rights = {},
                                  .owner = 0,
                                  .lendable = place_.front().lendable});
    });
}

soft_region::~soft_region()
{
    revoke();
    port_->let_go(std::move(place_));
}

void soft_region::revoke() noexcept
{
    if (key_ != 0 && !std::exchange(revoked_, true))
        port_->forget_key(key_);
}

} // namespace weftio::nic
