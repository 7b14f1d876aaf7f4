// What both ends' queue pairs get from a REQ and a REP.
#include <gtest/gtest.h>

#include "cm/agreement.hpp"

namespace weftio::cm::test {

namespace {

const proposal active{.queue = 0x111,
                      .first_psn = 0xaaa,
                      .responder_resources = 3,
                      .initiator_depth = 5,
                      .retry_count = 6,
                      .rnr_retry_count = 2,
                      .path_mtu = 1024,
                      .transport = transport_service::unreliable,
                      .ack_timeout = 14};
const proposal passive{
    .queue = 0x222, .first_psn = 0xbbb, .responder_resources = 4, .initiator_depth = 1, .rnr_retry_count = 1};

} // namespace

TEST(Agreement, GivesEachEndWhatTheOtherHasProposed)
{
    const req request = request_of(active, 77, {}, {});
    const rep reply = reply_of(passive, {});
    EXPECT_EQ(agreed_by_active(request, reply), (agreement{.transport = transport_service::unreliable,
                                                           .peer_queue = 0x222,
                                                           .receive_psn = 0xaaa,
                                                           .send_psn = 0xbbb,
                                                           .path_mtu = 1024,
                                                           .most_reads_of_peer = 1,
                                                           .most_reads = 4,
                                                           .timeout = 14,
                                                           .retry_count = 6,
                                                           .rnr_retry = 1}));
    EXPECT_EQ(agreed_by_passive(request, reply), (agreement{.transport = transport_service::unreliable,
                                                            .peer_queue = 0x111,
                                                            .receive_psn = 0xbbb,
                                                            .send_psn = 0xaaa,
                                                            .path_mtu = 1024,
                                                            .most_reads_of_peer = 4,
                                                            .most_reads = 1,
                                                            .timeout = 14,
                                                            .retry_count = 6,
                                                            .rnr_retry = 2}));
}

TEST(Agreement, AsksThePassiveEndForTheMirrorOfTheRequest)
{
    const agreement asked = asked_of_passive(request_of(active, 77, {}, {}));
    EXPECT_EQ(asked.most_reads_of_peer, 5);
    EXPECT_EQ(asked.most_reads, 3);
    EXPECT_EQ(asked.peer_queue, 0x111u);
}

TEST(Agreement, HasTheAddressesAheadOfThePrivateData)
{
    const ip_header ports{.source_port = 5,
                          .source = net::gid_of_ipv4(std::array<std::uint8_t, 4>{10, 0, 0, 1}),
                          .destination = net::gid_of_ipv4(std::array<std::uint8_t, 4>{10, 0, 0, 2})};
    const std::vector<std::uint8_t> data{1, 2, 3};
    const req made = request_of(active, 77, ports, data);
    EXPECT_EQ(read_ip_header(made.data), ports);
    EXPECT_EQ(made.data[ip_header::bytes + 2], 3);
    EXPECT_EQ(made.data[ip_header::bytes + 3], 0);
    mad there;
    EXPECT_EQ(read(write({.transaction = 1, .body = made}), there), mad_refusal::none);
    EXPECT_EQ(std::get<req>(there.body), made);
}

} // namespace weftio::cm::test
