#include "nic/soft/receive/steering.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

#include <rte_byteorder.h>
#include <rte_thash.h>

namespace weftio::nic::soft {
namespace {

/// Fields that a packet has or a rule needs: bits of flat_headers::fields and flat_match::needed.
enum field : std::uint8_t {
    field_ethernet = 1,
    field_ipv4 = 2,
    field_ipv6 = 4,
    field_protocol = 8,
    field_ports = 16,
    field_tcp = 32,
};

/// The parts of the last word that rules compare.
struct small_fields {
    std::uint16_t ether_type = 0;
    std::uint16_t vlan_id = 0;
    std::uint8_t protocol = 0;
    std::uint8_t tcp_flags = 0;
    std::uint16_t unused = 0;
};
static_assert(sizeof(small_fields) == 8);

using address = std::array<std::uint8_t, 16>;

template <class Words>
Words to_words(const address& source, const address& destination, const small_fields& small) noexcept
{
    Words words;
    static_assert(sizeof words == sizeof source + sizeof destination + sizeof small);
    std::memcpy(&words[0], source.data(), sizeof source);
    std::memcpy(&words[2], destination.data(), sizeof destination);
    words[4] = std::bit_cast<std::uint64_t>(small);
    return words;
}

/// The values or the masks of a rule, while they are collected.
struct wish {
    address source{};
    address destination{};
    small_fields small{};
};

template <std::size_t bytes>
void wish_prefix(const std::array<std::uint8_t, bytes>& prefix, unsigned length, address& value, address& mask) noexcept
{
    for (std::size_t i = 0; i < bytes; ++i) {
        const unsigned bits = std::min(length - std::min(length, static_cast<unsigned>(i * 8)), 8u);
        value[i] = prefix[i];
        mask[i] = static_cast<std::uint8_t>(0xff00u >> bits);
    }
}

std::uint8_t wish_addresses(const flow_match& match, wish& value, wish& mask) noexcept
{
    const auto add = [](const auto& prefix, address& wanted, address& bits, field needed) -> std::uint8_t {
        if (!prefix)
            return 0;
        wish_prefix(prefix->address, prefix->length, wanted, bits);
        return needed;
    };
    unsigned needed = add(match.ipv4_source, value.source, mask.source, field_ipv4);
    needed |= add(match.ipv4_destination, value.destination, mask.destination, field_ipv4);
    needed |= add(match.ipv6_source, value.source, mask.source, field_ipv6);
    needed |= add(match.ipv6_destination, value.destination, mask.destination, field_ipv6);
    return static_cast<std::uint8_t>(needed);
}

std::uint8_t wish_small_fields(const flow_match& match, small_fields& value, small_fields& mask) noexcept
{
    const auto add = [](const auto& wanted, auto& field_value, auto& field_mask, field needed) -> std::uint8_t {
        if (!wanted)
            return 0;
        field_value = *wanted;
        field_mask = static_cast<std::remove_reference_t<decltype(field_mask)>>(~0u);
        return needed;
    };
    unsigned needed = add(match.ether_type, value.ether_type, mask.ether_type, field_ethernet);
    needed |= add(match.vlan, value.vlan_id, mask.vlan_id, field_ethernet);
    needed |= add(match.ip_protocol, value.protocol, mask.protocol, field_protocol);
    if (match.tcp_flags) {
        value.tcp_flags = match.tcp_flags->value;
        mask.tcp_flags = match.tcp_flags->mask;
        needed |= field_tcp;
    }
    return static_cast<std::uint8_t>(needed);
}

bool within(std::uint16_t port, const port_range& range) noexcept
{
    return port >= range.first && port <= range.last;
}

/// A Toeplitz key as words in host order, as rte_softrss_be() takes it.
using toeplitz_key = std::array<std::uint32_t, 10>;
constexpr toeplitz_key standard_key = {0x6d5a56da, 0x255b0ec2, 0x4167253d, 0x43a38fb0, 0xd0ca2bcb,
                                       0xae7b30b4, 0x77cb2da3, 0x8030f20c, 0x6a42b73b, 0xbeac01fa};
constexpr toeplitz_key symmetric_key = {0x6d5a6d5a, 0x6d5a6d5a, 0x6d5a6d5a, 0x6d5a6d5a, 0x6d5a6d5a,
                                        0x6d5a6d5a, 0x6d5a6d5a, 0x6d5a6d5a, 0x6d5a6d5a, 0x6d5a6d5a};

std::uint32_t* append_address(std::uint32_t* to, const address& from, std::size_t bytes) noexcept
{
    for (std::size_t at = 0; at < bytes; at += 4) {
        std::uint32_t word;
        std::memcpy(&word, &from[at], sizeof word);
        *to++ = rte_be_to_cpu_32(word);
    }
    return to;
}

std::vector<std::uint32_t> make_indirection(const steering_rule& rule)
{
    std::vector<std::uint32_t> table = rule.targets;
    if (rule.action == flow_kind::rss) {
        table.resize(indirection_entries);
        for (std::size_t entry = 0; entry < table.size(); ++entry)
            table[entry] = rule.targets[entry % rule.targets.size()];
    }
    return table;
}

} // namespace

std::uint32_t rss_hash(const net::packet_headers& headers, rss_key key) noexcept
{
    if (headers.l3 == net::l3_kind::none)
        return 0;
    std::array<std::uint32_t, 9> tuple;
    const std::size_t address_bytes = headers.l3 == net::l3_kind::ipv4 ? 4 : 16;
    std::uint32_t* end = append_address(tuple.data(), headers.source, address_bytes);
    end = append_address(end, headers.destination, address_bytes);
    if (headers.l4 != net::l4_kind::none && !headers.fragment)
        *end++ = static_cast<std::uint32_t>(headers.source_port) << 16 | headers.destination_port;
    const toeplitz_key& words = key == rss_key::symmetric ? symmetric_key : standard_key;
    return rte_softrss_be(tuple.data(), static_cast<std::uint32_t>(end - tuple.data()),
                          reinterpret_cast<const std::uint8_t*>(words.data()));
}

steering::flat_headers steering::flatten(const net::packet_headers& headers) noexcept
{
    flat_headers flat;
    const small_fields small{.ether_type = headers.ether_type,
                             .vlan_id = headers.vlan_id(),
                             .protocol = headers.protocol,
                             .tcp_flags = headers.tcp_flags};
    flat.words = to_words<match_words>(headers.source, headers.destination, small);
    flat.source_port = headers.source_port;
    flat.destination_port = headers.destination_port;
    flat.fields = static_cast<std::uint8_t>(
        (headers.l3_offset != 0 ? field_ethernet : 0) | (headers.l3 == net::l3_kind::ipv4 ? field_ipv4 : 0) |
        (headers.l3 == net::l3_kind::ipv6 ? field_ipv6 : 0) | (headers.has_protocol ? field_protocol : 0) |
        (headers.l4 != net::l4_kind::none ? field_ports : 0) | (headers.l4 == net::l4_kind::tcp ? field_tcp : 0));
    return flat;
}

steering::flat_match steering::compile(const flow_match& match) noexcept
{
    wish value, mask;
    flat_match flat;
    unsigned needed = wish_addresses(match, value, mask);
    needed |= wish_small_fields(match, value.small, mask.small);
    if (match.source_port || match.destination_port)
        needed |= field_ports;
    flat.source_port = match.source_port.value_or(flat.source_port);
    flat.destination_port = match.destination_port.value_or(flat.destination_port);
    flat.mask = to_words<match_words>(mask.source, mask.destination, mask.small);
    flat.value = to_words<match_words>(value.source, value.destination, value.small);
    for (std::size_t word = 0; word < flat.value.size(); ++word)
        flat.value[word] &= flat.mask[word];
    flat.needed = static_cast<std::uint8_t>(needed);
    flat.everything = needed == 0;
    return flat;
}

bool steering::matches(const flat_match& rule, const flat_headers& packet) noexcept
{
    if ((packet.fields & rule.needed) != rule.needed)
        return false;
    std::uint64_t difference = 0;
    for (std::size_t word = 0; word < packet.words.size(); ++word)
        difference |= (packet.words[word] & rule.mask[word]) ^ rule.value[word];
    return difference == 0 && within(packet.source_port, rule.source_port) &&
           within(packet.destination_port, rule.destination_port);
}

void steering::add(std::shared_ptr<steering_rule> rule)
{
    assert((rule->action == flow_kind::drop) == rule->targets.empty()); // flows/validate.hpp has checked it
    outcome added{.rule = rule,
                  .indirection = make_indirection(*rule),
                  .action = rule->action,
                  .key = rule->key,
                  .priority = rule->priority,
                  .sequence = rule->sequence};
    if (matches_.size() == std::min(matches_.capacity(), outcomes_.capacity())) {
        matches_.reserve(2 * matches_.size() + 1); // not one by one: many rules are added one at a time
        outcomes_.reserve(2 * matches_.size() + 1);
    }

    const auto before = [](const outcome& a, const outcome& b) {
        return std::tie(a.priority, a.sequence) < std::tie(b.priority, b.sequence);
    };
    const auto position = std::upper_bound(outcomes_.begin(), outcomes_.end(), added, before) - outcomes_.begin();
    matches_.insert(matches_.begin() + position, compile(rule->match));
    outcomes_.insert(outcomes_.begin() + position, std::move(added));
}

bool steering::remove(const steering_rule* rule) noexcept
{
    const auto found =
        std::find_if(outcomes_.begin(), outcomes_.end(), [&](const outcome& o) { return o.rule.get() == rule; });
    if (found == outcomes_.end())
        return false;
    matches_.erase(matches_.begin() + (found - outcomes_.begin()));
    outcomes_.erase(found);
    return true;
}

void steering::forget_queue(std::uint32_t queue) noexcept
{
    for (outcome& outcome : outcomes_)
        std::replace(outcome.indirection.begin(), outcome.indirection.end(), queue, rx_target::closed);
}

decision steering::apply(const outcome& outcome, const received_frame& frame,
                         const net::packet_headers* headers) noexcept
{
    outcome.rule->packets.add(1);
    outcome.rule->bytes.add(frame.bytes);

    decision result{.parsed = headers != nullptr};
    if (outcome.action == flow_kind::drop) {
        result.reason = drop_reason::dropped_by_flow;
        return result;
    }
    std::size_t entry = 0;
    if (outcome.action == flow_kind::rss && headers != nullptr && headers->l3 != net::l3_kind::none) {
        result.rss_hash = rss_hash(*headers, outcome.key);
        result.has_hash = true;
        entry = result.rss_hash % indirection_entries;
    }
    result.target.queue = outcome.indirection[entry];
    if (result.target.queue == rx_target::closed)
        result.reason = drop_reason::queue_closed;
    return result;
}

std::uint32_t steering::taker_of_all() const noexcept
{
    if (matches_.empty() || !matches_.front().everything || outcomes_.front().action != flow_kind::queue)
        return rx_target::closed;
    return outcomes_.front().indirection.front();
}

void steering::count_all(std::uint64_t packets, std::uint64_t bytes) noexcept
{
    outcomes_.front().rule->packets.add(packets);
    outcomes_.front().rule->bytes.add(bytes);
}

decision steering::decide(const received_frame& frame, net::packet_headers* headers, bool is_parsed) noexcept
{
    if (matches_.empty())
        return {.reason = drop_reason::no_match, .parsed = is_parsed};
    if (matches_.front().everything && outcomes_.front().action != flow_kind::rss)
        return apply(outcomes_.front(), frame, is_parsed ? headers : nullptr);

    net::packet_headers local;
    net::packet_headers& parsed = headers != nullptr ? *headers : local;
    if (!is_parsed)
        parsed = net::parse(frame.start, frame.stripped_tci);
    const flat_headers flat = flatten(parsed);
    for (std::size_t rule = 0; rule < matches_.size(); ++rule) {
        if (!matches(matches_[rule], flat))
            continue;
        decision result = apply(outcomes_[rule], frame, &parsed);
        result.parsed = headers != nullptr;
        return result;
    }
    return {.reason = drop_reason::no_match, .parsed = headers != nullptr};
}

std::vector<std::shared_ptr<const steering_rule>> steering::all() const
{
    std::vector<std::shared_ptr<const steering_rule>> rules;
    for (const outcome& each : outcomes_)
        rules.push_back(each.rule);
    return rules;
}

} // namespace weftio::nic::soft
