#include "nic/soft/rdma/roce_directory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "net/packet_headers.hpp"
#include "nic/soft/rdma/rdma_unit.hpp"
#include "weftio/error.hpp"

namespace weftio::nic::soft {

std::uint32_t roce_directory::free_number()
{
    for (std::uint32_t tried = 0; tried != numbers; ++tried) {
        const std::uint32_t number = next_;
        next_ = number == first_ + numbers - 1 ? first_ : number + 1;
        if (!find(number).receiver)
            return number;
    }
    throw error(errc::out_of_memory,
                fmt::format("weftio: rdma_queue: the port has {} queue pairs, the maximum; close some", numbers));
}

void roce_directory::put(std::uint32_t number, const entry& to)
{
    const std::uint32_t at = index_of(number);
    if (at >= entries_.size())
        entries_.resize(at + 1);
    reserve_claimed();
    entries_[at] = to;
}

void roce_directory::take_management(std::uint32_t number)
{
    const entry now = find(number_of_management);
    if (now.receiver && now.number != number)
        throw error(errc::in_use, fmt::format("weftio: queue_pair {}: queue pair {} of the port already receives "
                                              "management datagrams; a port has one such queue pair",
                                              number, now.number));
    put(number_of_management, find(number));
}

void roce_directory::erase(std::uint32_t number) noexcept
{
    std::erase_if(members_, [number](const membership& one) { return one.number == number; });
    if (find(number_of_management).number == number)
        entries_[index_of(number_of_management)] = {};
    entries_[index_of(number)] = {};
    note_addresses();
}

unsigned roce_directory::emptiest() const noexcept
{
    auto fewer = [](const rdma_unit* a, const rdma_unit* b) { return a->in_use() < b->in_use(); };
    return static_cast<unsigned>(std::min_element(units_.begin(), units_.end(), fewer) - units_.begin());
}

roce_arrivals& roce_directory::neighbors_home() const noexcept
{
    return units_.front()->arrivals();
}

void roce_directory::reserve_claimed()
{
    claimed_.reserve(entries_.size() + neighbors_.count() + 1);
}

void roce_directory::add_address(const rdma_own_address& own)
{
    reserve_claimed();
    neighbors_.add(own);
    note_addresses();
}

void roce_directory::remove_address(const net::roce_gid& address)
{
    neighbors_.remove(address);
    note_addresses();
}

bool roce_directory::is_ours(const claimed_address& at) const noexcept
{
    return std::find(claimed_.begin(), claimed_.end(), at) != claimed_.end();
}

void roce_directory::join(const net::header_address& group, std::uint32_t number)
{
    const membership wanted{group, number};
    if (std::find(members_.begin(), members_.end(), wanted) == members_.end())
        members_.push_back(wanted);
}

bool roce_directory::leave(const net::header_address& group, std::uint32_t number) noexcept
{
    return std::erase(members_, membership{group, number}) != 0;
}

bool roce_directory::has_members(const net::header_address& group) const noexcept
{
    return std::any_of(members_.begin(), members_.end(), [&](const membership& one) { return one.group == group; });
}

bool roce_directory::is_to_us(const net::packet_headers& headers) const noexcept
{
    if (!members_.empty() && has_members({.bytes = headers.destination, .l3 = headers.l3}))
        return true;
    return std::any_of(claimed_.begin(), claimed_.end(), [&](const claimed_address& at) {
        return at.address.is(headers.l3, headers.destination) && at.vlan == vlan_of(headers.vlan_id());
    });
}

void roce_directory::note_addresses()
{
    claimed_.clear();
    neighbors_.for_each([&](const rdma_own_address& own) {
        claimed_.push_back({.address = net::header_address_of(own.address), .vlan = vlan_of(own.vlan_tci)});
    });
    for (const entry& each : entries_)
        if (each.receiver)
            if (const std::optional<claimed_address> at = each.receiver->claims(); at && !is_ours(*at))
                claimed_.push_back(*at);
    for (rdma_unit* const unit : units_)
        unit->addresses_changed(!claimed_.empty());
}

} // namespace weftio::nic::soft
