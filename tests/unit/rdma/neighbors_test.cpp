// Addresses that a port has of its own: who asks for their MAC gets it, and peers' MACs are found by asking.
#include <thread>

#include "net/neighbor_messages.hpp"
#include "nic/rdma_backend.hpp"
#include "two_ends.hpp"
#include "weftio/error.hpp"

namespace weftio::test {

namespace {

using frame = std::vector<std::uint8_t>;
using net::mac_address;
using net::neighbor_message;
using net::roce_gid;

constexpr mac_address mac_a{2, 0, 0, 0, 0, 0xa}, mac_b{2, 0, 0, 0, 0, 0xb};

roce_gid ipv4(std::uint8_t last)
{
    return net::gid_of_ipv4(std::array<std::uint8_t, 4>{10, 0, 0, last});
}

roce_gid ipv6(std::uint8_t last)
{
    return {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0x56, last};
}

roce_gid address_of(bool six, std::uint8_t last)
{
    return six ? ipv6(last) : ipv4(last);
}

net::neighbor_frame frame_from(const mac_address& mac, std::uint16_t vlan_tci = nic::no_vlan)
{
    net::neighbor_frame path;
    path.source_mac = mac;
    if (vlan_tci != nic::no_vlan)
        path.tags[path.tag_count++].tci = vlan_tci;
    return path;
}

frame question(const net::neighbor_frame& path, const roce_gid& source, const roce_gid& target)
{
    frame bytes(net::most_neighbor_bytes);
    bytes.resize(net::build_question(bytes, path, source, target));
    return bytes;
}

frame answer(const net::neighbor_frame& path, const neighbor_message& to)
{
    frame bytes(net::most_neighbor_bytes);
    bytes.resize(net::build_answer(bytes, path, to));
    return bytes;
}

std::optional<neighbor_message> read(const frame& bytes)
{
    neighbor_message message;
    if (!net::parse_neighbor(bytes, net::parse(bytes, std::nullopt), message))
        return std::nullopt;
    return message;
}

/// As Linux 6.1 sends them: ping from 10.9.0.2 to 10.9.0.1, and from fe80::2 to fe80::1.
const frame arp_of_linux{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0,  0, 0, 0, 2, 8, 6, 0, 1, 8, 0,  6, 4, 0,
                         1,    2,    0,    0,    0,    0,    2, 10, 9, 0, 2, 0, 0, 0, 0, 0, 0, 10, 9, 0, 1};

class NeighborMessages : public testing::TestWithParam<std::tuple<bool, std::uint16_t>> {
 protected:
    bool six = std::get<0>(GetParam());
    std::uint16_t vlan_tci = std::get<1>(GetParam());
    roce_gid a = address_of(six, 1), b = address_of(six, 2);
};

TEST_P(NeighborMessages, AQuestionIsReadAsItWasBuilt)
{
    const frame bytes = question(frame_from(mac_a, vlan_tci), a, b);
    const auto message = read(bytes);
    ASSERT_TRUE(message);
    EXPECT_TRUE(message->asks);
    EXPECT_EQ(message->mac, mac_a);
    EXPECT_EQ(message->source, a);
    EXPECT_EQ(message->target, b);
    EXPECT_EQ(bytes[0] & 1, 1) << "goes to a group";
}

TEST_P(NeighborMessages, AnAnswerIsReadAsItWasBuilt)
{
    const frame bytes = answer(frame_from(mac_b, vlan_tci), {.asks = true, .mac = mac_a, .source = a, .target = b});
    const auto message = read(bytes);
    ASSERT_TRUE(message);
    EXPECT_FALSE(message->asks);
    EXPECT_EQ(message->mac, mac_b);
    EXPECT_EQ(message->target, b);
    EXPECT_EQ(message->addressee, a);
    EXPECT_TRUE(std::equal(mac_a.begin(), mac_a.end(), bytes.begin())) << "goes to who has asked";
}

TEST_P(NeighborMessages, WhoHasNoAddressYetIsAnswered)
{
    const auto asked = read(
        question(frame_from(mac_a, vlan_tci), six ? roce_gid{} : net::gid_of_ipv4(std::array<std::uint8_t, 4>{}), b));
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->source, roce_gid{});
    const auto reported = read(answer(frame_from(mac_b, vlan_tci), *asked));
    ASSERT_TRUE(reported);
    EXPECT_EQ(reported->target, b);
    EXPECT_EQ(reported->addressee, roce_gid{});
}

TEST_P(NeighborMessages, ThatEndEarlyAreNone)
{
    for (const frame& whole :
         {question(frame_from(mac_a, vlan_tci), a, b),
          answer(frame_from(mac_b, vlan_tci), {.asks = true, .mac = mac_a, .source = a, .target = b})})
        for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
            EXPECT_FALSE(read({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)})) << bytes;
}

/// What is behind Ethernet, without the bytes that may be anything.
TEST_P(NeighborMessages, WithOneByteChangedSayOthersOrNothing)
{
    const frame whole = question(frame_from(mac_a, vlan_tci), a, b);
    const std::size_t begin = vlan_tci == nic::no_vlan ? 14 : 18;
    for (std::size_t at = begin; at < whole.size(); ++at) {
        if (six ? at > begin && at < begin + 4 : at >= begin + 18 && at < begin + 24)
            continue; // traffic class and flow label; the MAC that is asked for
        frame changed = whole;
        changed[at] ^= 0x10;
        const auto message = read(changed);
        if (six)
            EXPECT_FALSE(message) << at; // the checksum
        else
            EXPECT_FALSE(message && message->asks && message->mac == mac_a && message->source == a &&
                         message->target == b)
                << at;
    }
}

/// An answer to one of these would go to many.
TEST_P(NeighborMessages, OfAGroupAreNone)
{
    roce_gid group = a;
    group[six ? 0 : 12] = six ? 0xff : 224;
    EXPECT_FALSE(read(question(frame_from(mac_a, vlan_tci), group, b)));
    EXPECT_FALSE(read(question(frame_from(mac_a, vlan_tci), a, group)));
    EXPECT_FALSE(read(question(frame_from({3, 0, 0, 0, 0, 1}, vlan_tci), a, b)));
}

INSTANTIATE_TEST_SUITE_P(Each, NeighborMessages,
                         testing::Combine(testing::Bool(), testing::Values(nic::no_vlan, std::uint16_t{0x6007})));

TEST(NeighborMessages, OfLinuxAreRead)
{
    const auto message = read(arp_of_linux);
    ASSERT_TRUE(message);
    EXPECT_TRUE(message->asks);
    EXPECT_EQ(message->mac, (mac_address{2, 0, 0, 0, 0, 2}));
    EXPECT_EQ(message->source, net::gid_of_ipv4(std::array<std::uint8_t, 4>{10, 9, 0, 2}));
    EXPECT_EQ(message->target, net::gid_of_ipv4(std::array<std::uint8_t, 4>{10, 9, 0, 1}));
    EXPECT_EQ(question(frame_from({2, 0, 0, 0, 0, 2}), message->source, message->target), arp_of_linux);
}

class OwnAddress : public testing::TestWithParam<std::tuple<bool, std::uint16_t>> {
 protected:
    std::unique_ptr<nic::held_rdma_address> add(unsigned number, const roce_gid& address)
    {
        return detail::internals::backend(ports.get(number))
            .add_rdma_address({.address = address, .mac = number == 0 ? mac_a : mac_b, .vlan_tci = vlan_tci});
    }
    /// What port 1 sends when port 0 has sent a frame.
    std::vector<frame> answers_to(const frame& bytes)
    {
        ports.send_to(1, bytes);
        for (unsigned turn = 0; turn < 4; ++turn)
            ports.get(1).turn();
        return ports.take(0);
    }
    frame question_for(const roce_gid& target, std::uint16_t vlan)
    {
        return question(frame_from(mac_a, vlan), a, target);
    }

    bool six = std::get<0>(GetParam());
    std::uint16_t vlan_tci = std::get<1>(GetParam());
    roce_gid a = address_of(six, 1), b = address_of(six, 2);
    wired_ports ports{engine_mode::inline_worker};
};

TEST_P(OwnAddress, IsFoundByAPeer)
{
    wired_ports busy(engine_mode::thread);
    const auto ours =
        detail::internals::backend(busy.get(0)).add_rdma_address({.address = a, .mac = mac_a, .vlan_tci = vlan_tci});
    const auto theirs =
        detail::internals::backend(busy.get(1)).add_rdma_address({.address = b, .mac = mac_b, .vlan_tci = vlan_tci});
    constexpr std::chrono::seconds patience{3};
    EXPECT_EQ(ours->resolve(b, patience), mac_b);
    EXPECT_EQ(theirs->resolve(a, patience), mac_a);
    EXPECT_EQ(ours->resolve(a, patience), mac_a) << "its own";
    expect_conserved(software_nic(busy.get(0)).rdma());
    EXPECT_EQ(software_nic(busy.get(0)).rdma().arrivals().neighbor.value(), 2u) << "an answer and a question";
}

TEST_P(OwnAddress, IsToldToWhoAsks)
{
    const auto own = add(1, b);
    const std::vector<frame> answers = answers_to(question_for(b, vlan_tci));
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0], answer(frame_from(mac_b, vlan_tci), {.asks = true, .mac = mac_a, .source = a, .target = b}));
}

TEST_P(OwnAddress, IsToldInItsVlanOnly)
{
    const auto own = add(1, b);
    EXPECT_TRUE(answers_to(question_for(b, 9)).empty());
    EXPECT_EQ(software_nic(ports.get(1)).rdma().arrivals().claimed.value(), 0u);
}

TEST_P(OwnAddress, IsNotThatOfOthers)
{
    const auto own = add(1, b);
    EXPECT_TRUE(answers_to(question_for(address_of(six, 3), vlan_tci)).empty());
    EXPECT_EQ(software_nic(ports.get(1)).rdma().arrivals().claimed.value(), 0u) << "the port's rules have it";
}

TEST_P(OwnAddress, EndsWithItsObject)
{
    add(1, b).reset();
    EXPECT_TRUE(answers_to(question_for(b, vlan_tci)).empty());
}

TEST_P(OwnAddress, LearnsNothingUnasked)
{
    const auto own = add(1, b);
    answers_to(answer(frame_from(mac_a, vlan_tci), {.asks = true, .mac = mac_b, .source = b, .target = a}));
    EXPECT_EQ(software_nic(ports.get(1)).rdma().arrivals().claimed.value(), 0u);
    EXPECT_EQ(software_nic(ports.get(1)).engines().directory().addresses().answer_to(b, a), std::nullopt);
}

TEST_P(OwnAddress, IsGivenOnce)
{
    const auto own = add(1, b);
    EXPECT_THROW(add(1, b), error);
    EXPECT_EQ(answers_to(question_for(b, vlan_tci)).size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Each, OwnAddress,
                         testing::Combine(testing::Bool(), testing::Values(nic::no_vlan, std::uint16_t{0x6007})));

TEST(OwnAddress, OfNobodyIsAskedForThreeTimes)
{
    wired_ports ports(engine_mode::inline_worker);
    const auto own = detail::internals::backend(ports.get(0)).add_rdma_address({.address = ipv4(1), .mac = mac_a});
    EXPECT_EQ(own->resolve(ipv4(2), std::chrono::seconds(3)), std::nullopt);
    const std::vector<frame> asked = ports.take(1);
    ASSERT_EQ(asked.size(), 3u);
    EXPECT_EQ(asked[2], question(frame_from(mac_a), ipv4(1), ipv4(2)));
    EXPECT_EQ(software_nic(ports.get(0)).engines().directory().addresses().answer_to(ipv4(1), ipv4(2)), std::nullopt);
}

} // namespace

} // namespace weftio::test
