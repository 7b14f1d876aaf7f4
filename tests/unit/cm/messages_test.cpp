// Messages of connection management: those that Linux sent, byte for byte, and the place of every field.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "captured.hpp"
#include "cm/messages.hpp"

namespace {

using namespace weftio::cm;
using cm_captured::bytes;
using cm_captured::hex;

TEST(CmMessages, OfCapturesAreWrittenAgainByteForByte)
{
    std::multiset<std::string> seen;
    for (const char* const name : {"rxe-cm", "rxe-raw-peer"}) {
        for (const cm_captured::datagram& one : cm_captured::datagrams_of(name)) {
            mad whole;
            ASSERT_EQ(read(one.mad, whole), mad_refusal::none) << name << ", frame " << one.frame;
            const auto again = write(whole);
            EXPECT_TRUE(std::equal(again.begin(), again.end(), one.mad.begin(), one.mad.end()))
                << name << ", frame " << one.frame;
            seen.insert(name_of(whole.body));
        }
    }
    EXPECT_EQ(seen, (std::multiset<std::string>{"DREP", "DREP", "DREP", "DREQ", "DREQ", "DREQ", "MRA", "REJ", "REP",
                                                "REP", "REP", "REQ", "REQ", "REQ", "REQ", "REQ", "RTU", "RTU", "RTU"}));
}

/// Frame 20 of rxe-cm.pcap, by the field, as tshark and facts about rxe have it.
TEST(CmMessages, RequestOfRstreamIsReadByField)
{
    mad whole;
    ASSERT_EQ(read(cm_captured::frame_of("rxe-cm", 20), whole), mad_refusal::none);
    EXPECT_EQ(whole.transaction, 0x226bd655a);
    const req& request = std::get<req>(whole.body);
    req wanted{.local_id = 0x5a65bd26,
               .service = service_of(port_space::tcp, 7471),
               .guid = 0x5054c0fffe000203,
               .queue = 0x13,
               .remote_response_timeout = 20,
               .flow_control = true,
               .first_psn = 0x258082,
               .local_response_timeout = 20,
               .retry_count = 7,
               .path_mtu = 3,
               .rnr_retry_count = 7,
               .most_retries = 15,
               .data = request.data};
    const roce_gid source = weftio::net::gid_of_ipv4(std::array<std::uint8_t, 4>{192, 0, 2, 3});
    const roce_gid destination = weftio::net::gid_of_ipv4(std::array<std::uint8_t, 4>{192, 0, 2, 2});
    wanted.primary = {.local_lid = 0xffff,
                      .remote_lid = 0xffff,
                      .local_gid = source,
                      .remote_gid = destination,
                      .flow_label = 0x63842,
                      .hop_limit = 0x40,
                      .ack_timeout = 19};
    EXPECT_EQ(request, wanted);
    EXPECT_EQ(read_ip_header(request.data), (ip_header{0xb68d, source, destination}));
    const bytes own = hex("01020180 00000000 0000561847f14000");
    EXPECT_TRUE(std::equal(own.begin(), own.end(), request.data.begin() + ip_header::bytes));
}

TEST(CmMessages, ReplyAndRejectOfRxeAreReadByField)
{
    mad whole;
    ASSERT_EQ(read(cm_captured::frame_of("rxe-cm", 2), whole), mad_refusal::none);
    EXPECT_EQ(std::get<rep>(whole.body), (rep{.local_id = 0x98d50914,
                                              .remote_id = 0x5865bd26,
                                              .queue = 0x11,
                                              .first_psn = 0x5ffbea,
                                              .responder_resources = 1,
                                              .initiator_depth = 1,
                                              .ack_delay = 15,
                                              .rnr_retry_count = 7,
                                              .guid = 0x5054c0fffe000202}));
    ASSERT_EQ(read(cm_captured::frame_of("rxe-cm", 19), whole), mad_refusal::none);
    EXPECT_EQ(std::get<rej>(whole.body), (rej{.remote_id = 0x5965bd26, .reason = reject_reason::invalid_service_id}));
    ASSERT_EQ(read(cm_captured::frame_of("rxe-raw-peer", 3), whole), mad_refusal::none);
    EXPECT_EQ(std::get<mra>(whole.body),
              (mra{.local_id = 0x8daa8b6e, .remote_id = 0x11223344, .what = about::req, .service_timeout = 24}));
    ASSERT_EQ(read(cm_captured::frame_of("rxe-cm", 16), whole), mad_refusal::none);
    EXPECT_EQ(std::get<dreq>(whole.body),
              (dreq{.local_id = 0x5865bd26, .remote_id = 0x98d50914, .remote_queue = 0x11}));
}

/// A message, its attribute, and how its body begins; zeros follow.
struct placed {
    const char* name;
    message body;
    std::uint16_t attribute;
    const char* begin;
};

placed req_of_all_bits()
{
    req all{.local_id = 0x01020304,
            .service = 0x1112131415161718,
            .guid = 0x2122232425262728,
            .queue_key = 0x31323334,
            .queue = 0x414243,
            .responder_resources = 0x51,
            .initiator_depth = 0x52,
            .local_eec = 0x616263,
            .remote_eec = 0x717273,
            .remote_response_timeout = 0x1f,
            .transport = transport_service::extended,
            .first_psn = 0x818283,
            .local_response_timeout = 1,
            .retry_count = 6,
            .partition_key = 0x9192,
            .path_mtu = 5,
            .rdc_exists = true,
            .rnr_retry_count = 2,
            .most_retries = 0xa,
            .shared_receives = true,
            .extended_transport = 1};
    all.primary = {.local_lid = 0xa1a2,
                   .remote_lid = 0xa3a4,
                   .flow_label = 0xb1b2b,
                   .packet_rate = 0x3f,
                   .traffic_class = 0xc1,
                   .hop_limit = 0xc2,
                   .service_level = 0xc,
                   .subnet_local = true,
                   .ack_timeout = 0x11};
    all.primary.local_gid[0] = 0xd1;
    all.primary.remote_gid[15] = 0xd2;
    all.alternate = {.local_lid = 0xe1e2, .flow_label = 1, .ack_timeout = 2};
    all.data[0] = 0xf1;
    return {"REQ", all, 0x10,
            "01020304 00000000 1112131415161718 2122232425262728 00000000 31323334 41424351 61626352 717273fe"
            "8182830e 91925a a9 a1a2a3a4 d1000000000000000000000000000000 000000000000000000000000000000d2"
            "b1b2b03f c1c2c888 e1e20000 0000000000000000 0000000000000000 0000000000000000 0000000000000000"
            "00001000 00000010 f1"};
}

std::vector<placed> placed_messages()
{
    rej rejected{.local_id = 1, .remote_id = 2, .what = about::rep, .info_bytes = 72};
    rejected.reason = static_cast<reject_reason>(0x0102);
    rejected.info[0] = 0xa1;
    rejected.info[71] = 0xa2;
    rejected.data[0] = 0xb1;
    mra delayed{.local_id = 1, .remote_id = 2, .what = about::other, .service_timeout = 0x15};
    delayed.data[0] = 0xb1;
    rep reply{.local_id = 1, .remote_id = 2, .queue_key = 3, .queue = 4, .local_eec = 5, .first_psn = 6};
    reply.responder_resources = 7;
    reply.initiator_depth = 8;
    reply.ack_delay = 0x11;
    reply.failover = 2;
    reply.flow_control = true;
    reply.rnr_retry_count = 5;
    reply.shared_receives = true;
    reply.guid = 9;
    reply.data[0] = 0xb1;
    sidr_rep told{.request_id = 1, .status = service_status::redirected, .info_bytes = 2, .queue = 3, .service = 4};
    told.queue_key = 5;
    told.info[0] = 0xa1;
    told.data[0] = 0xb1;
    const std::string seventy(70 * 2, '0'), seventy_one(71 * 2, '0');
    static const std::string rej_bytes = "00000001 00000002 40 90 0102 a1" + seventy + "a2 b1";
    static const std::string lap_bytes = "00000001 00000002 00000000 000003 00" + std::string(48 * 2, '0') + "b1";
    static const std::string apr_bytes = "00000001 00000002 03 02 0000" + std::string(72 * 2, '0') + "b1";
    static const std::string sidr_bytes =
        "00000001 04 02 0000 00000300 0000000000000004 00000005 a1" + seventy_one + "b1";
    return {
        req_of_all_bits(),
        {"MRA", delayed, 0x11, "00000001 00000002 80 a8 b1"},
        {"REJ", rejected, 0x12, rej_bytes.c_str()},
        {"REP", reply, 0x13, "00000001 00000002 00000003 00000400 00000500 00000600 07 08 8d b0 0000000000000009 b1"},
        {"RTU", rtu{1, 2, {0xb1}}, 0x14, "00000001 00000002 b1"},
        {"DREQ", dreq{1, 2, 0xabcdef, {0xb1}}, 0x15, "00000001 00000002 abcdef00 b1"},
        {"DREP", drep{1, 2, {0xb1}}, 0x16, "00000001 00000002 b1"},
        {"SIDR REQ", sidr_req{1, 0x8001, 0x0102030405060708, {0xb1}}, 0x17, "00000001 80010000 0102030405060708 b1"},
        {"SIDR REP", told, 0x18, sidr_bytes.c_str()},
        {"LAP", lap{1, 2, 3, {0xb1}}, 0x19, lap_bytes.c_str()},
        {"APR", apr{1, 2, 3, alternate_status::unsupported, {}, {0xb1}}, 0x1a, apr_bytes.c_str()},
    };
}

TEST(CmMessages, EachFieldHasItsPlace)
{
    for (const placed& one : placed_messages()) {
        const mad whole{0x0102030405060708, one.body};
        bytes wanted = hex("01070203 00000000 0102030405060708");
        const bytes body = hex(one.begin);
        wanted.push_back(0);
        wanted.push_back(static_cast<std::uint8_t>(one.attribute));
        wanted.resize(24);
        wanted.insert(wanted.end(), body.begin(), body.end());
        wanted.resize(mad_bytes);
        const auto written = write(whole);
        EXPECT_EQ(bytes(written.begin(), written.end()), wanted) << one.name;
        EXPECT_STREQ(name_of(one.body), one.name);
        mad again;
        ASSERT_EQ(read(written, again), mad_refusal::none);
        EXPECT_EQ(again, whole) << one.name;
    }
}

TEST(CmMessages, PrivateDataFillsTheRest)
{
    constexpr std::size_t begins[]{140, 10, 84, 36, 8, 12, 8, 16, 96, 64, 84}; // in the body, of each message
    bytes given(mad_bytes, 0xff);
    for (std::size_t index = 0; index < std::size(begins); ++index) {
        const bytes header = hex("01070203 00000000 0102030405060708");
        std::copy(header.begin(), header.end(), given.begin());
        given[16] = 0;
        given[17] = static_cast<std::uint8_t>(0x10 + index);
        mad whole;
        ASSERT_EQ(read(given, whole), mad_refusal::none);
        ASSERT_EQ(whole.body.index(), index);
        const auto again = write(whole);
        const std::size_t begin = 24 + begins[index];
        std::visit([&](const auto& body) { EXPECT_EQ(body.data.size(), mad_bytes - begin); }, whole.body);
        EXPECT_EQ(std::count(again.begin() + static_cast<std::ptrdiff_t>(begin), again.end(), 0xff),
                  static_cast<std::ptrdiff_t>(mad_bytes - begin));
    }
}

TEST(CmMessages, OfAnyBytesAreReadTheSameAgain)
{
    std::mt19937 random(1);
    for (int round = 0; round < 5000; ++round) {
        bytes given = hex("01070203 00000000");
        while (given.size() < mad_bytes)
            given.push_back(static_cast<std::uint8_t>(random()));
        given[16] = 0;
        given[17] = static_cast<std::uint8_t>(0x10 + random() % 11);
        mad once, twice;
        ASSERT_EQ(read(given, once), mad_refusal::none);
        ASSERT_EQ(read(write(once), twice), mad_refusal::none);
        ASSERT_EQ(once, twice);
    }
}

TEST(CmMessages, RefusalsOfWhatIsNone)
{
    const bytes good = cm_captured::frame_of("rxe-cm", 1);
    const auto altered = [&](std::size_t at, std::uint8_t value) {
        bytes bad = good;
        bad[at] = value;
        mad untouched{.transaction = 77};
        const mad_refusal why = read(bad, untouched);
        EXPECT_EQ(untouched.transaction, 77u);
        return why;
    };
    EXPECT_EQ(altered(0, 2), mad_refusal::wrong_base);
    EXPECT_EQ(altered(1, 3), mad_refusal::other_class);
    EXPECT_EQ(altered(2, 1), mad_refusal::unknown_version);
    EXPECT_EQ(altered(3, 1), mad_refusal::wrong_method);
    EXPECT_EQ(altered(17, 0x1b), mad_refusal::unknown_attribute);
    EXPECT_EQ(altered(17, 0x0f), mad_refusal::unknown_attribute);
    EXPECT_EQ(altered(16, 1), mad_refusal::unknown_attribute);
    for (const std::size_t count : {0u, 1u, 24u, 255u}) {
        // A copy of its own, so that a sanitizer sees a byte read behind it.
        const auto part = std::make_unique<std::uint8_t[]>(count);
        std::copy_n(good.begin(), count, part.get());
        mad whole;
        EXPECT_EQ(read({part.get(), count}, whole), mad_refusal::wrong_size);
    }
    bytes long_one = good;
    long_one.push_back(0);
    mad whole;
    EXPECT_EQ(read(long_one, whole), mad_refusal::wrong_size);
}

TEST(CmMessages, IpHeader)
{
    const roce_gid ipv4_source = weftio::net::gid_of_ipv4(std::array<std::uint8_t, 4>{10, 1, 2, 3});
    const roce_gid ipv4 = weftio::net::gid_of_ipv4(std::array<std::uint8_t, 4>{10, 4, 5, 6});
    private_bytes<92> data{};
    data[36] = 0x77;
    write_ip_header(std::span(data).first<ip_header::bytes>(), {0x1234, ipv4_source, ipv4});
    const bytes wanted = hex("00401234 000000000000000000000000 0a010203 000000000000000000000000 0a040506 77");
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), data.begin()));
    EXPECT_EQ(read_ip_header(data), (ip_header{0x1234, ipv4_source, ipv4}));

    const roce_gid ipv6_source{0xfd, 1}, ipv6{0xfd, 2};
    write_ip_header(std::span(data).first<ip_header::bytes>(), {1, ipv6_source, ipv6});
    EXPECT_EQ(data[1], 0x60);
    EXPECT_EQ(read_ip_header(data), (ip_header{1, ipv6_source, ipv6}));

    EXPECT_EQ(read_ip_header(std::span(data).first(35)), std::nullopt);
    data[1] = 0x50;
    EXPECT_EQ(read_ip_header(data), std::nullopt);
    data[1] = 0x40;
    data[0] = 0x10;
    EXPECT_EQ(read_ip_header(data), std::nullopt);
}

TEST(CmMessages, ServicesOfPorts)
{
    EXPECT_EQ(service_of(port_space::tcp, 0x1c06), 0x0000000001061c06u);
    EXPECT_EQ(service_of(port_space::udp, 1), 0x0000000001110001u);
    EXPECT_EQ(service_of(port_space::ib, 0xffff), 0x00000000013fffffu);
}

/// @return how many different sentences the numbers 0 to `most` have
template <class Reason>
std::size_t sentences(unsigned most)
{
    std::set<std::string> all;
    for (unsigned number = 0; number <= most; ++number) {
        const std::string text = text_of(static_cast<Reason>(number));
        EXPECT_TRUE(text.size() > 10 && text.back() == '.') << number << ": " << text;
        all.insert(text);
    }
    return all.size();
}

TEST(CmMessages, EveryReasonIsASentenceOfItsOwn)
{
    EXPECT_EQ(sentences<reject_reason>(33), 34u);
    EXPECT_STREQ(text_of(static_cast<reject_reason>(34)), text_of(static_cast<reject_reason>(0)));
    EXPECT_STREQ(text_of(static_cast<reject_reason>(0xffff)), text_of(static_cast<reject_reason>(0)));
    EXPECT_STREQ(text_of(reject_reason::consumer_reject), "The program at the peer has rejected the connection.");
    EXPECT_STREQ(text_of(reject_reason::invalid_alternate_flow_label),
                 "The peer does not accept the flow label of the alternate path.");
    EXPECT_EQ(sentences<alternate_status>(3), 4u);
    EXPECT_EQ(sentences<service_status>(6), 7u);
    EXPECT_STREQ(text_of(static_cast<service_status>(255)), text_of(static_cast<service_status>(6)));
    EXPECT_EQ(sentences<refusal>(6), 7u);
    EXPECT_EQ(sentences<mad_refusal>(6), 7u);
}

} // namespace
