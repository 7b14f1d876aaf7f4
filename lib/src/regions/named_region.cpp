#include "regions/named_region.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/cancellation.hpp"
#include "core/guarded.hpp"
#include "keys/key_table.hpp"
#include "weftio/error.hpp"

namespace weftio::regions {

namespace {

keys::key_table& keys()
{
    return core::undying<keys::key_table>();
}

} // namespace

void require_within(std::string_view who, const memory_region& region, const device& device, const pieces& wanted)
{
    const devices::device_backend& owner = *detail::internals::block(region)->owner;
    if (!detail::internals::backend(device).shares_memory_with(owner))
        throw error(errc::not_reachable,
                    fmt::format("weftio: {}: the region's memory is of device {}, which kernels of device {} cannot "
                                "use; allocate it on the device that {} is made for",
                                who, owner.name(), device.name(), who));
    const std::uint64_t behind = (wanted.count - 1) * wanted.stride_bytes + wanted.bytes; // each factor has 32 bits
    if (wanted.offset_bytes > region.bytes() || behind > region.bytes() - wanted.offset_bytes)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: {} times {} bytes, {} from each to the next, from byte {} on do not lie "
                                "within the region of {} bytes; make it longer, or ask for fewer",
                                who, wanted.count, wanted.bytes, wanted.stride_bytes, wanted.offset_bytes,
                                region.bytes()));
}

named_region::named_region(std::shared_ptr<const devices::memory_block> block, region_use use,
                           const region_options& options)
    : block_(std::move(block)), domain_(options.domain), rights_(options.rights)
{
    if (use == region_use::entries)
        key_ = keys().add({.cpu = static_cast<std::byte*>(block_->at.cpu),
                           .device = block_->owner.get(),
                           .device_base = reinterpret_cast<std::uint64_t>(block_->at.device),
                           .bytes = block_->bytes,
                           .domain = options.domain,
                           .rights = options.rights});
    if (block_->adopted)
        core::guard_memory(); // the program may have set a handler since it was adopted
}

named_region::~named_region()
{
    const core::not_cancelled until_nics_have_let_go;
    revoke();
    nics_.clear();
    if (withdrawn_ && maker_.may_end())
        keys().release(key_);
}

void named_region::register_with(nic::memory_user& nic)
{
    if (std::any_of(nics_.begin(), nics_.end(), [&](const at_nic& each) { return each.nic == &nic; }))
        return;
    nics_.reserve(nics_.size() + 1); // allocates, so it comes before anything changes
    nics_.push_back(
        {&nic, nic.register_memory({.block = block_, .process_key = key_, .rights = rights_, .domain = domain_})});
}

std::optional<std::uint32_t> named_region::lkey(const nic::memory_user& nic) const noexcept
{
    for (const at_nic& each : nics_)
        if (each.nic == &nic)
            return each.region->key();
    return std::nullopt;
}

void named_region::revoke() noexcept
{
    if (key_ == 0 || withdrawn_ || !maker_.may_end())
        return;
    withdrawn_ = keys().withdraw(key_);
    for (const auto& each : nics_)
        each.region->revoke();
}

} // namespace weftio::regions
