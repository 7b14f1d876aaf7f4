// Linux's side of rxe-cm.pcap plays the peer: our messages are compared with those that Linux sent in our place, byte
// for byte, but for communication IDs and transaction numbers.
#include <gtest/gtest.h>

#include "captured.hpp"
#include "ends.hpp"

namespace {

using namespace cm_ends;

/// A message as it was captured, with our IDs in place of those of whom we play.
class replayed {
 public:
    explicit replayed(std::size_t frame)
    {
        EXPECT_EQ(read(cm_captured::frame_of("rxe-cm", frame), whole), mad_refusal::none);
    }

    template <class Body>
    Body& body()
    {
        return std::get<Body>(whole.body);
    }
    mad whole;
};

settings guid_of(std::uint64_t guid)
{
    settings with = usual(1);
    with.guid = guid;
    return with;
}

struct CmReplay : testing::Test {
    const roce_gid client_address = weftio::net::gid_of_ipv4(std::array<std::uint8_t, 4>{192, 0, 2, 3});
    const roce_gid server_address = weftio::net::gid_of_ipv4(std::array<std::uint8_t, 4>{192, 0, 2, 2});
    const path at_server{server_address, client_address}, at_client{client_address, server_address};
};

/// Frames 20, 21, 22, 42, 43: rstream, we are the server.
TEST_F(CmReplay, ServerOfRstream)
{
    end server(1, guid_of(0x5054c0fffe000202));
    manager& ours = server.under_test;
    std::uint32_t listener = 0;
    ours.listen(service_of(port_space::tcp, 7471), server_address, 1, listener);
    ours.receive(at_server, cm_captured::frame_of("rxe-cm", 20), 1);
    const event asked = server.told();
    ASSERT_EQ(asked.kind, event_kind::connect_request);
    EXPECT_EQ(std::get<req>(asked.body), replayed(20).body<req>());

    replayed reply(21);
    ours.accept(asked.id, reply.body<rep>(), 1);
    reply.body<rep>().local_id = asked.id;
    EXPECT_EQ(server.take_sent(), reply.whole);

    replayed last(22);
    last.body<rtu>().remote_id = asked.id;
    ours.receive(at_server, write(last.whole), 1);
    EXPECT_EQ(server.told().kind, event_kind::established);

    replayed disconnect(42);
    disconnect.body<dreq>().remote_id = asked.id;
    ours.receive(at_server, write(disconnect.whole), 1);
    replayed disconnected(43);
    disconnected.body<drep>().local_id = asked.id;
    EXPECT_EQ(server.take_sent(), disconnected.whole);
    EXPECT_EQ(server.told().kind, event_kind::disconnected);
}

/// Frames 1, 2, 3, 16, 17: rping, we are the client.
TEST_F(CmReplay, ClientOfRping)
{
    end client(1, guid_of(0x5054c0fffe000203));
    manager& ours = client.under_test;
    replayed request(1);
    req given = request.body<req>();
    given.guid = 0;
    given.primary.local_gid = given.primary.remote_gid = {};
    std::uint32_t id = 0;
    ASSERT_EQ(ours.connect(at_client, given, 1, id), refusal::none);
    const mad sent = client.take_sent();
    request.body<req>().local_id = id;
    EXPECT_EQ(sent.body, request.whole.body);

    replayed reply(2);
    reply.whole.transaction = sent.transaction;
    reply.body<rep>().remote_id = id;
    ours.receive(at_client, write(reply.whole), 1);
    EXPECT_EQ(std::get<rep>(client.told().body), reply.body<rep>());

    replayed last(3);
    ours.ready(id);
    last.whole.transaction = sent.transaction;
    last.body<rtu>().local_id = id;
    EXPECT_EQ(client.take_sent(), last.whole);

    replayed disconnect(16);
    ours.disconnect(id, {}, 1);
    disconnect.whole.transaction = sent.transaction; // Linux numbers both alike, too
    disconnect.body<dreq>().local_id = id;
    EXPECT_EQ(client.take_sent(), disconnect.whole);

    replayed disconnected(17);
    disconnected.whole.transaction = sent.transaction;
    disconnected.body<drep>().remote_id = id;
    ours.receive(at_client, write(disconnected.whole), 1);
    EXPECT_EQ(client.told().kind, event_kind::disconnected);
}

/// Frames 18, 19: nobody listens.
TEST_F(CmReplay, NobodyListens)
{
    end server(1, guid_of(0));
    server.under_test.receive(at_server, cm_captured::frame_of("rxe-cm", 18), 1);
    EXPECT_EQ(server.take_sent(), replayed(19).whole);

    end client(2, guid_of(0));
    std::uint32_t id = 0;
    client.under_test.connect(at_client, usual_req(5), 1, id);
    replayed rejected(19);
    rejected.whole.transaction = client.take_sent().transaction;
    rejected.body<rej>().remote_id = id;
    client.under_test.receive(at_client, write(rejected.whole), 1);
    EXPECT_EQ(std::get<rej>(client.told().body).reason, reject_reason::invalid_service_id);
}

} // namespace
