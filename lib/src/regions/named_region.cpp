#include "regions/named_region.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/cancellation.hpp"
#include "core/guarded.hpp"
#include "core/log.hpp"
#include "keys/key_table.hpp"
#include "weftio/error.hpp"

namespace weftio::regions {

namespace {

keys::key_table& keys()
{
    return core::undying<keys::key_table>();
}

/// Lets windows be bound to a region again.
class opened {
 public:
    explicit opened(std::uint32_t region) noexcept : region_(region) {}
    opened(const opened&) = delete;
    opened& operator=(const opened&) = delete;
    ~opened() { keys().open_to_windows(region_); }

 private:
    const std::uint32_t region_;
};

} // namespace

void require_within(std::string_view who, const memory_region& region, const device& device, const pieces& wanted)
{
    const devices::device_backend& owner = *detail::internals::block(region)->owner;
    if (!detail::internals::backend(device).shares_memory_with(owner))
        throw error(errc::not_reachable, fmt::format("weftio: {}: the region's memory is on device {}, which kernels "
                                                     "of device {} cannot access; allocate it on the device of the {}",
                                                     who, owner.name(), device.name(), who));
    if (region.iova() != reinterpret_cast<std::uint64_t>(region.device_address()))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: the region's iova {:#x} differs from its device address, by which kernels "
                                "access buffers; leave region_options::iova out",
                                who, region.iova()));
    const std::uint64_t behind = (wanted.count - 1) * wanted.stride_bytes + wanted.bytes; // each factor has 32 bits
    if (wanted.offset_bytes > region.bytes() || behind > region.bytes() - wanted.offset_bytes)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: {} pieces of {} bytes with stride {} at offset {} exceed the region of {} "
                                "bytes; use a larger region, or fewer pieces",
                                who, wanted.count, wanted.bytes, wanted.stride_bytes, wanted.offset_bytes,
                                region.bytes()));
}

named_region::named_region(std::shared_ptr<const devices::memory_block> block, region_use use,
                           const region_options& options)
    : block_(std::move(block)), at_{.block = block_}
{
    take_in(options, 0, block_->bytes);
    if (use == region_use::entries)
        at_.process_key = keys().add(entry());
    if (block_->adopted)
        core::guard_memory(); // the program may have set a handler since it was adopted
}

void named_region::take_in(const region_options& options, std::size_t offset, std::size_t bytes) noexcept
{
    at_.domain = options.domain;
    at_.rights = options.rights;
    at_.offset = offset;
    at_.bytes = bytes;
    at_.address = options.iova.value_or(reinterpret_cast<std::uint64_t>(block_->at.device) + offset);
}

keys::key_entry named_region::entry() const noexcept
{
    auto* const cpu = static_cast<std::byte*>(block_->at.cpu);
    return {.cpu = cpu ? cpu + at_.offset : nullptr,
            .device = block_->owner.get(),
            .base = at_.address,
            .to_device = reinterpret_cast<std::uint64_t>(block_->at.device) + at_.offset - at_.address,
            .bytes = at_.bytes,
            .domain = at_.domain,
            .rights = at_.rights};
}

void named_region::rereg(const region_options& options, std::size_t offset, std::size_t bytes)
{
    if (!maker_.may_end())
        return;
    require_no_windows("rereg");
    if (!keys().withdraw(at_.process_key))
        return;
    for (const auto& each : nics_)
        each.region->revoke();
    take_in(options, offset, bytes);
    at_.process_key = keys().renew(at_.process_key, entry());
    for (const auto& each : nics_)
        each.region->renew(at_);
    keys().open_to_windows(at_.process_key);
}

void named_region::replace(std::shared_ptr<const devices::memory_block> block, const region_options& options)
{
    if (!maker_.may_end())
        return;
    require_no_windows("replace");
    const opened when_done(at_.process_key);
    std::vector<std::unique_ptr<nic::region>> made;
    for (const auto& each : nics_) // without the key, which the present memory still has
        made.push_back(each.nic->register_memory({.block = block}));
    for (const auto& each : nics_)
        each.region->revoke();
    block_ = std::move(block);
    at_.block = block_;
    take_in(options, 0, block_->bytes);
    keys().change(at_.process_key, entry());
    for (std::size_t each = 0; each != nics_.size(); ++each) {
        nics_[each].region = std::move(made[each]);
        nics_[each].region->renew(at_);
    }
    if (block_->adopted)
        core::guard_memory();
}

named_region::~named_region()
{
    const core::not_cancelled until_nics_have_let_go;
    revoke();
    nics_.clear();
    if (withdrawn_ && maker_.may_end())
        keys().release(at_.process_key);
}

void named_region::register_with(nic::memory_user& nic)
{
    if (std::any_of(nics_.begin(), nics_.end(), [&](const at_nic& each) { return each.nic == &nic; }))
        return;
    nics_.reserve(nics_.size() + 1); // allocates, so it comes before anything changes
    nics_.push_back({&nic, nic.register_memory(at_)});
}

std::optional<std::uint32_t> named_region::lkey(const nic::memory_user& nic) const noexcept
{
    for (const at_nic& each : nics_)
        if (each.nic == &nic)
            return each.region->key();
    return std::nullopt;
}

std::uint32_t named_region::windows() const noexcept
{
    return at_.process_key == 0 || withdrawn_ ? 0 : keys().windows_of(at_.process_key);
}

void named_region::require_no_windows(std::string_view who) const
{
    const std::uint32_t bound = at_.process_key == 0 || withdrawn_ ? 0 : keys().close_to_windows(at_.process_key);
    if (bound != 0)
        throw error(
            errc::in_use,
            fmt::format("weftio: memory_region: {}: {} memory window{} bound to it; invalidate or destroy {} first",
                        who, bound, bound == 1 ? " is" : "s are", bound == 1 ? "it" : "them"));
}

void named_region::revoke() noexcept
{
    if (at_.process_key == 0 || withdrawn_ || !maker_.may_end())
        return;
    std::uint32_t freed = 0;
    for (const auto& each : nics_)
        freed += each.region->free_windows();
    if (freed += keys().free_windows_of(at_.process_key); freed != 0)
        core::log(log_level::warning,
                  fmt::format("memory_region: {} memory window{} still bound to a region when it ended", freed,
                              freed == 1 ? " was" : "s were"));
    withdrawn_ = keys().withdraw(at_.process_key);
    for (const auto& each : nics_)
        each.region->revoke();
}

} // namespace weftio::regions
