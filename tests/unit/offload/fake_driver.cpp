#include "fake_driver.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>

#include <gtest/gtest.h>
#include <rte_errno.h>

/// A rule of the fake driver: items that lie in its own memory.
struct rte_flow {
    struct header {
        std::vector<std::uint8_t> value, mask;
    };
    std::vector<header> headers;
    std::vector<rte_flow_item> items;
    std::uint64_t packets = 0, bytes = 0;
};

namespace weftio::test {

namespace {

struct all_drivers {
    std::mutex mutex;
    std::map<std::uint16_t, fake_driver*> of;
} all;

fake_driver* at(std::uint16_t port)
{
    std::scoped_lock lock(all.mutex);
    const auto found = all.of.find(port);
    return found == all.of.end() ? nullptr : found->second;
}

/// Bytes of the header at the beginning of an item; 0: unknown here.
std::size_t header_bytes(rte_flow_item_type type)
{
    switch (type) {
        case RTE_FLOW_ITEM_TYPE_ETH: return 14;
        case RTE_FLOW_ITEM_TYPE_VLAN: return 4;
        case RTE_FLOW_ITEM_TYPE_IPV4: return 20;
        case RTE_FLOW_ITEM_TYPE_IPV6: return 40;
        case RTE_FLOW_ITEM_TYPE_UDP: return 8;
        case RTE_FLOW_ITEM_TYPE_TCP: return 20;
        default: return 0;
    }
}

/// A walk through the headers of a frame, beside a walk through items.
struct walk {
    const bytes& frame;
    std::size_t at = 0;
    std::uint16_t type = 0;
    int protocol = -1;
    bool later_fragment = false;

    std::uint16_t word(std::size_t offset) const
    {
        return offset + 2 <= frame.size() ? static_cast<std::uint16_t>(frame[offset] << 8 | frame[offset + 1]) : 0;
    }
    bool is_tagged() const { return type == 0x8100 || type == 0x88a8 || type == 0x9100; }
    void skip_tags()
    {
        for (; is_tagged(); at += 4)
            type = word(at + 2);
    }
    bool compare(const rte_flow_item& item) const
    {
        static const bytes zeros(64);
        const std::size_t count = header_bytes(item.type);
        const std::uint8_t* header = later_fragment ? zeros.data() : frame.data() + at;
        if (!later_fragment && at + count > frame.size())
            return false;
        const auto *value = static_cast<const std::uint8_t*>(item.spec),
                   *mask = static_cast<const std::uint8_t*>(item.mask);
        for (std::size_t i = 0; value && i < count; ++i)
            if (((header[i] ^ value[i]) & mask[i]) != 0)
                return false;
        return true;
    }
    /// Whether the frame has the item's header here, and goes behind it.
    bool pass(const rte_flow_item& item)
    {
        switch (item.type) {
            case RTE_FLOW_ITEM_TYPE_ETH: return compare(item) && step(word(12), 14);
            case RTE_FLOW_ITEM_TYPE_VLAN: return is_tagged() && compare(item) && step(word(at + 2), 4);
            case RTE_FLOW_ITEM_TYPE_IPV4:
                skip_tags();
                return type == 0x0800 && compare(item) && enter(frame[at + 9], (frame[at] & 15u) * 4u);
            case RTE_FLOW_ITEM_TYPE_IPV6:
                skip_tags();
                return type == 0x86dd && compare(item) && enter(frame[at + 6], 40);
            case RTE_FLOW_ITEM_TYPE_UDP: return protocol == 17 && compare(item);
            case RTE_FLOW_ITEM_TYPE_TCP: return protocol == 6 && compare(item);
            default: ADD_FAILURE() << "an item of type " << item.type; return false;
        }
    }
    bool step(std::uint16_t next, std::size_t length)
    {
        type = next;
        at += length;
        return true;
    }
    bool enter(int next, std::size_t length)
    {
        later_fragment = type == 0x0800 && (word(at + 6) & 0x1fff) != 0;
        protocol = next;
        at += length;
        return true;
    }
};

int refuse(rte_flow_error* error, const char* message)
{
    rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr, message);
    return -ENOTSUP;
}

/// A copy that owns what its items point to.
std::unique_ptr<rte_flow> copy(const rte_flow_item* items)
{
    auto flow = std::make_unique<rte_flow>();
    for (; items->type != RTE_FLOW_ITEM_TYPE_END; ++items) {
        flow->items.push_back({.type = items->type, .spec = nullptr, .last = nullptr, .mask = nullptr});
        rte_flow::header& header = flow->headers.emplace_back();
        if (!items->spec)
            continue;
        const auto *value = static_cast<const std::uint8_t*>(items->spec),
                   *mask = static_cast<const std::uint8_t*>(items->mask);
        header = {{value, value + header_bytes(items->type)}, {mask, mask + header_bytes(items->type)}};
        flow->items.back().spec = header.value.data(); // vectors keep their bytes when they are moved
        flow->items.back().mask = header.mask.data();
    }
    flow->items.push_back({.type = RTE_FLOW_ITEM_TYPE_END, .spec = nullptr, .last = nullptr, .mask = nullptr});
    return flow;
}

} // namespace

bool matches(const rte_flow_item* items, const bytes& frame)
{
    walk along{.frame = frame};
    for (; items->type != RTE_FLOW_ITEM_TYPE_END; ++items)
        if (!along.pass(*items))
            return false;
    return true;
}

fake_driver::fake_driver(std::uint16_t port) : port_(port)
{
    std::scoped_lock lock(all.mutex);
    all.of[port] = this;
}

fake_driver::~fake_driver()
{
    std::scoped_lock lock(all.mutex);
    all.of.erase(port_);
}

bool fake_driver::drops(const bytes& frame)
{
    std::scoped_lock lock(mutex_);
    const auto found = std::find_if(rules_.begin(), rules_.end(),
                                    [&](const auto& rule) { return matches(rule->items.data(), frame); });
    if (found == rules_.end())
        return false;
    ++(*found)->packets;
    (*found)->bytes += frame.size();
    ++dropped_;
    return true;
}

std::size_t fake_driver::rules() const
{
    std::scoped_lock lock(mutex_);
    return rules_.size();
}

std::uint64_t fake_driver::dropped() const
{
    std::scoped_lock lock(mutex_);
    return dropped_;
}

unsigned fake_driver::made() const
{
    std::scoped_lock lock(mutex_);
    return made_;
}

void fake_driver::forget_counts()
{
    std::scoped_lock lock(mutex_);
    for (const auto& rule : rules_)
        rule->packets = rule->bytes = 0;
}

int fake_driver::validate(const rte_flow_item* items, const rte_flow_action* actions, rte_flow_error* error)
{
    for (; items->type != RTE_FLOW_ITEM_TYPE_END; ++items) {
        EXPECT_EQ(items->spec == nullptr, items->mask == nullptr) << "DPDK has a mask of its own then";
        if (can.unknown_items.contains(items->type))
            return refuse(error, "the fake driver does not know this item");
    }
    std::set<rte_flow_action_type> wanted;
    for (; actions->type != RTE_FLOW_ACTION_TYPE_END; ++actions) {
        wanted.insert(actions->type);
        if (can.unknown_actions.contains(actions->type))
            return refuse(error, "the fake driver does not know this action");
    }
    EXPECT_EQ(wanted, (std::set<rte_flow_action_type>{RTE_FLOW_ACTION_TYPE_COUNT, RTE_FLOW_ACTION_TYPE_DROP}));
    return 0;
}

rte_flow* fake_driver::create(const rte_flow_item* items, const rte_flow_action* actions, rte_flow_error* error)
{
    if (validate(items, actions, error) != 0)
        return nullptr;
    if (!can.makes) {
        rte_errno = -refuse(error, "the fake driver is full");
        return nullptr;
    }
    std::scoped_lock lock(mutex_);
    ++made_;
    return rules_.emplace_back(copy(items)).get();
}

int fake_driver::query(rte_flow* flow, rte_flow_query_count& count, rte_flow_error* error)
{
    if (!can.answers)
        return refuse(error, "the fake driver does not answer");
    std::scoped_lock lock(mutex_);
    count.hits_set = can.tells_packets;
    count.bytes_set = can.tells_bytes;
    count.hits = flow->packets;
    count.bytes = flow->bytes;
    return 0;
}

int fake_driver::destroy(rte_flow* flow, rte_flow_error* error)
{
    if (!can.ends)
        return refuse(error, "the fake driver keeps its rules");
    std::scoped_lock lock(mutex_);
    EXPECT_EQ(std::erase_if(rules_, [&](const auto& rule) { return rule.get() == flow; }), 1u)
        << "a rule that the driver does not have";
    return 0;
}

extern "C" {
int __real_rte_flow_validate(std::uint16_t, const rte_flow_attr*, const rte_flow_item*, const rte_flow_action*,
                             rte_flow_error*);
rte_flow* __real_rte_flow_create(std::uint16_t, const rte_flow_attr*, const rte_flow_item*, const rte_flow_action*,
                                 rte_flow_error*);
int __real_rte_flow_query(std::uint16_t, rte_flow*, const rte_flow_action*, void*, rte_flow_error*);
int __real_rte_flow_destroy(std::uint16_t, rte_flow*, rte_flow_error*);

int __wrap_rte_flow_validate(std::uint16_t port, const rte_flow_attr* attributes, const rte_flow_item* items,
                             const rte_flow_action* actions, rte_flow_error* error)
{
    EXPECT_TRUE(attributes->ingress == 1 && attributes->egress == 0 && attributes->transfer == 0);
    fake_driver* fake = at(port);
    return fake ? fake->validate(items, actions, error)
                : __real_rte_flow_validate(port, attributes, items, actions, error);
}

rte_flow* __wrap_rte_flow_create(std::uint16_t port, const rte_flow_attr* attributes, const rte_flow_item* items,
                                 const rte_flow_action* actions, rte_flow_error* error)
{
    fake_driver* fake = at(port);
    return fake ? fake->create(items, actions, error) : __real_rte_flow_create(port, attributes, items, actions, error);
}

int __wrap_rte_flow_query(std::uint16_t port, rte_flow* flow, const rte_flow_action* action, void* data,
                          rte_flow_error* error)
{
    EXPECT_EQ(action->type, RTE_FLOW_ACTION_TYPE_COUNT);
    fake_driver* fake = at(port);
    return fake ? fake->query(flow, *static_cast<rte_flow_query_count*>(data), error)
                : __real_rte_flow_query(port, flow, action, data, error);
}

int __wrap_rte_flow_destroy(std::uint16_t port, rte_flow* flow, rte_flow_error* error)
{
    fake_driver* fake = at(port);
    return fake ? fake->destroy(flow, error) : __real_rte_flow_destroy(port, flow, error);
}
}

} // namespace weftio::test
