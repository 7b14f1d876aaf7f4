#include "cable_windows.hpp"

#include <utility>

#include "core/undying.hpp"
#include "keys/key_table.hpp"

namespace weftio::test {

namespace {

keys::key_table& of_process()
{
    return core::undying<keys::key_table>();
}

bool has(access rights, access right)
{
    return (rights & right) == right;
}

/// The words of an entry that docs/formats.md names.
enum : std::size_t { present_key = 3, flags = 4, octowords, mask_high, mask_low, free_and_rights = 16, queue_variant };
enum : std::size_t { start_high = 20, start_low, length_high, length_low, memory_bytes = 32, memory_key, memory_high };

constexpr std::uint32_t segments_of_bind = 12, segments_of_free = 8, changing_mask = 0x20002000;
constexpr std::uint32_t bind_mask = changing_mask | 0x41, queue_bit = 0x4000, rights_mask = 0x3c0000;
constexpr std::uint32_t umr_type_1 = 0x90000000, umr_type_2 = 0xb0000000, umr_invalidate = 0x98000000;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 31;

} // namespace

struct cable_window::asked_bind {
    bool is_type_2 = false;
    std::uint8_t variant = 0;
    std::uint32_t region = 0;
    std::uint64_t begin = 0, bytes = 0;
    access rights = access::none;
};

cable_window::cable_window(std::shared_ptr<nic::backend> port, cable_tables& tables, window_type type,
                           protection_domain domain)
    : port_(std::move(port)), tables_(tables), type_(type), domain_(domain)
{
    const std::scoped_lock lock(tables_.mutex);
    key_ = tables_.last_window += 0x300; // indices of their own, which no region gets
    tables_.windows[key_ >> 8] = this;
}

cable_window::~cable_window()
{
    const std::scoped_lock lock(tables_.mutex);
    free();
    tables_.windows.erase(key_ >> 8);
}

memory_window_standing cable_window::standing() const noexcept
{
    const std::scoped_lock lock(tables_.mutex);
    return {.rkey = key_, .type = type_, .bound = bound_, .region = bound_ ? region_ : 0, .domain = domain_};
}

void cable_window::free()
{
    if (std::exchange(bound_, false))
        of_process().let_go(process_key_);
}

/// A peer of type 1 is in the domain, one of type 2 is that of the queue pair that has bound it.
bool cable_window::is_reached_by(const cable_window_user& who) const
{
    if (type_ == window_type::type_2 && user_ != who.queue)
        return false;
    return (type_ == window_type::type_2 && is_2a_) || domain_ == who.domain;
}

bool cable_window::may_free(std::uint32_t key, const cable_window_user& by) const
{
    return type_ == window_type::type_2 && bound_ && key == key_ && is_reached_by(by);
}

std::uint8_t* cable_window::find(std::uint32_t key, std::uint64_t address, std::uint64_t count, access rights,
                                 const cable_window_user& by) const
{
    if (!bound_ || key != key_ || !is_reached_by(by) || !has(rights_, rights) ||
        (has(rights, access::remote_atomic) && !has_atomics_))
        return nullptr;
    const nic::region_request& region = *tables_.keys.at(region_);
    const auto inside = [&](std::uint64_t begin, std::uint64_t bytes) {
        return address - begin <= bytes && count <= bytes - (address - begin);
    };
    if (!inside(begin_, bytes_) || !inside(region.address, region.bytes)) // it may have been bound beyond its region
        return nullptr;
    return static_cast<std::uint8_t*>(region.block->at.cpu) + region.offset + (address - region.address);
}

bool cable_window::change(const std::array<std::uint32_t, 256>& words, std::uint32_t segments,
                          const cable_window_user& by)
{
    const std::uint32_t mask = words[mask_low] & ~rights_mask, key = words[present_key];
    const bool names_it = !bound_ || key == key_; // of a free window, the index is enough
    const bool says_free = (words[free_and_rights] & 0x40000000) != 0;
    asked_bind asked{.is_type_2 = words[flags] == umr_type_2,
                     .variant = static_cast<std::uint8_t>(words[queue_variant])};
    if (words[mask_high] != 0 || (segments != segments_of_bind && segments != segments_of_free))
        return false;
    if (segments == segments_of_free) {
        if (words[octowords] != 0 || !says_free)
            return false;
        if (words[flags] == umr_invalidate) {
            const bool may = words[mask_low] == (changing_mask | queue_bit) && may_free(key, by);
            if (may)
                free();
            return may;
        }
        return words[flags] == umr_type_1 && mask == changing_mask && names_it && bind(asked, by);
    }
    const std::uint32_t queue = asked.is_type_2 ? by.queue : 0xffffff;
    asked.region = words[memory_key];
    asked.begin = std::uint64_t{words[start_high]} << 32 | words[start_low];
    asked.bytes = std::uint64_t{words[length_high]} << 32 | words[length_low];
    const auto give = [&](std::uint32_t bit, std::uint32_t changes, access right) {
        if ((words[free_and_rights] & bit) != 0 && (words[mask_low] & changes) != 0)
            asked.rights = asked.rights | right;
    };
    give(0x1000, 0x80000, access::remote_read);
    give(0x2000, 0x100000, access::remote_write);
    give(0x4000, 0x200000, access::remote_atomic);
    const bool sound = (asked.is_type_2 || words[flags] == umr_type_1) && !says_free && words[octowords] == 4u << 16 &&
                       mask == (asked.is_type_2 ? bind_mask | queue_bit : bind_mask) &&
                       words[queue_variant] >> 8 == queue && words[memory_bytes] == asked.bytes &&
                       asked.bytes <= most_bytes && words[memory_high] == words[start_high] &&
                       words[memory_high + 1] == words[start_low];
    return sound && asked.bytes != 0 && names_it && bind(asked, by);
}

/// The region, if it may be lent so; nullptr: not.
const nic::region_request* cable_window::region_for(const asked_bind& asked, const cable_window_user& by) const
{
    const auto found = tables_.keys.find(asked.region);
    if (found == tables_.keys.end() || tables_.ending.contains(asked.region))
        return nullptr;
    const nic::region_request& region = *found->second;
    const bool changes = has(asked.rights, access::remote_write) || has(asked.rights, access::remote_atomic);
    const std::uint64_t offset = asked.begin - region.address;
    const bool holds = offset <= region.bytes && asked.bytes <= region.bytes - offset;
    return region.domain == by.domain && has(region.rights, access::bind) && region.address != 0 &&
                   (!changes || has(region.rights, access::local_write)) && (holds || !by.how.strict)
               ? &region
               : nullptr;
}

/// Without bytes, frees a window of type 1.
bool cable_window::bind(const asked_bind& asked, const cable_window_user& by)
{
    if (asked.is_type_2 != (type_ == window_type::type_2) || domain_ != by.domain || (asked.is_type_2 && bound_))
        return false;
    const nic::region_request* const region = asked.bytes == 0 ? nullptr : region_for(asked, by);
    if (asked.bytes != 0 && (region == nullptr || !of_process().hold(region->process_key)))
        return false;
    free();
    key_ = (key_ & ~0xffu) | asked.variant;
    bound_ = region != nullptr;
    if (!bound_)
        return true;
    region_ = asked.region;
    process_key_ = region->process_key;
    user_ = by.queue;
    is_2a_ = asked.is_type_2 && by.how.type_2a;
    has_atomics_ = by.how.strict;
    begin_ = asked.begin;
    bytes_ = asked.bytes;
    rights_ = asked.rights;
    return true;
}

std::unique_ptr<nic::window> make_cable_window(std::shared_ptr<nic::backend> port, cable_tables& tables,
                                               window_type type, protection_domain domain)
{
    return std::make_unique<cable_window>(std::move(port), tables, type, domain);
}

std::uint32_t free_cable_windows(cable_tables& tables, std::uint32_t region)
{
    const std::scoped_lock lock(tables.mutex);
    tables.ending.insert(region);
    std::uint32_t freed = 0;
    for (const auto& [index, window] : tables.windows)
        if (window->is_of(region)) {
            window->free();
            ++freed;
        }
    return freed;
}

cable_window* find_cable_window(const cable_tables& tables, std::uint32_t key)
{
    const auto found = tables.windows.find(key >> 8);
    return found == tables.windows.end() ? nullptr : found->second;
}

} // namespace weftio::test
