// Queue pairs that connect by listener and rdma_connect().
#include <atomic>
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "public_pair.hpp"

namespace weftio::test {

namespace {

using testing::HasSubstr;
using bytes_of_user = std::vector<std::uint8_t>;

constexpr std::uint16_t listening_port = 18515;
const auto long_enough = std::chrono::duration_cast<std::chrono::milliseconds>(patience);

/// Two ports, or one with itself.
class RdmaConnect : public testing::TestWithParam<bool> {
 protected:
    static constexpr rdma_queue_options of_queues{.entries = 64, .receive_entries = 64, .timeout = 18};

    bool one_port() const { return GetParam(); }
    rdma_device& passive() { return *ends.devices[one_port() ? 0 : 1]; }
    rdma_device& active() { return *ends.devices[0]; }
    end_memory& memory_of_passive() { return ends.memory(one_port() ? 0 : 1); }
    rdma_connection connect(rdma_queue& queue, rdma_connect_options options = {})
    {
        options.timeout = long_enough;
        return rdma_connect(active(), passive().address(), listening_port, queue, std::move(options));
    }
    /// In another thread.
    std::future<rdma_connection> begin_to_connect(rdma_queue& queue, rdma_connect_options options = {})
    {
        return std::async(std::launch::async, [this, &queue, options] { return connect(queue, options); });
    }
    rdma_request next() { return listener->next(long_enough); }
    /// Within `patience`.
    static bool is_disconnected(const rdma_connection& one)
    {
        const auto end = std::chrono::steady_clock::now() + patience;
        while (one.connected() && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return !one.connected();
    }
    /// The bytes that a WRITE of `from` has put into the memory of the passive end.
    void expect_write(rdma_queue& from)
    {
        const weftio_dev_buf source = ends.buffer(0);
        const std::size_t half = public_ends::memory_bytes / 2;
        std::uint8_t* const target = memory_of_passive().region.buffer().address + half;
        std::memset(source.address, ++byte, 5000);
        weftio_dev_remote remote = remote_region::of(memory_of_passive().region, half).on_device();
        ASSERT_EQ(weftio_dev_rdma_write(from.handle(), remote, 0, source, 0, 5000, WEFTIO_DEV_SEND_NONE),
                  WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_commit_wait(from.handle(), 0), WEFTIO_DEV_OK);
        EXPECT_EQ(std::count(target, target + 5000, byte), 5000);
    }

    wired_ports ports{engine_mode::thread};
    public_ends ends{ports.of_ends(false), engine_mode::thread};
    std::optional<rdma_listener> listener{std::in_place, passive(), listening_port};
    std::uint8_t byte = 1;
};
INSTANTIATE_TEST_SUITE_P(At, RdmaConnect, testing::Bool(),
                         [](const auto& one_port) { return one_port.param ? "OnePort" : "TwoPorts"; });

/// What the call throws: its code and its sentence.
template <class Error = error, class Call>
Error thrown_by(Call&& call)
{
    try {
        call();
    } catch (const Error& why) {
        EXPECT_EQ(std::string(why.what()).find('\n'), std::string::npos);
        return why;
    }
    ADD_FAILURE() << "nothing is thrown";
    throw std::logic_error("nothing is thrown");
}

} // namespace

TEST_P(RdmaConnect, ConnectsQueuesWithPrivateDataAndDisconnects)
{
    rdma_queue client(active(), ends.where, of_queues), server(passive(), ends.where, of_queues);
    std::atomic<int> ended{0};
    auto asking = begin_to_connect(client, {.private_data = {1, 2, 3}, .on_disconnect = [&] { ++ended; }});
    rdma_request request = next();
    EXPECT_EQ(request.peer_address(), "10.0.0.1");
    EXPECT_GE(request.peer_port(), 0x8000);
    EXPECT_EQ(request.service(), rdma_service::reliable);
    EXPECT_EQ(request.path_mtu(), client.path_mtu());
    bytes_of_user sent(56), answer(196);
    sent[0] = 1, sent[1] = 2, sent[2] = 3, answer[0] = 9;
    EXPECT_EQ(request.private_data(), sent);
    rdma_connection at_server = request.accept(server, {.private_data = {9}});
    rdma_connection at_client = asking.get();
    EXPECT_EQ(at_server.private_data(), sent);
    EXPECT_EQ(at_client.private_data(), answer);
    EXPECT_EQ(at_client.peer_address(), passive().address());
    EXPECT_EQ(at_client.peer_port(), listening_port);
    EXPECT_TRUE(at_client.connected() && at_server.connected());
    expect_write(client);
    at_server.disconnect();
    EXPECT_FALSE(at_server.connected());
    EXPECT_TRUE(is_disconnected(at_client));
    EXPECT_EQ(client.state(), rdma_state::error);
    EXPECT_EQ(server.state(), rdma_state::error);
    at_client.disconnect(); // waits for the callback
    EXPECT_EQ(ended, 1);
}

/// The same queues, the same numbers.
TEST_P(RdmaConnect, ConnectsManyTimesOneAfterTheOther)
{
    rdma_queue client(active(), ends.where, of_queues), server(passive(), ends.where, of_queues);
    for (int round = 0; round != 100; ++round) {
        auto asking = begin_to_connect(client);
        rdma_connection at_server = next().accept(server, {.timeout = long_enough});
        rdma_connection at_client = asking.get();
        expect_write(client);
        (round % 2 == 0 ? at_server : at_client).disconnect();
        EXPECT_TRUE(is_disconnected(at_server) && is_disconnected(at_client));
        client.reset();
        server.reset();
    }
}

TEST_P(RdmaConnect, ConnectsManyAtOnce)
{
    constexpr std::uint32_t count = 24;
    rdma_connections clients(active(), ends.where, count, of_queues), servers(passive(), ends.where, count, of_queues);
    std::vector<std::future<rdma_connection>> asking;
    for (std::uint8_t each = 0; each != count; ++each)
        asking.push_back(begin_to_connect(clients[each], {.private_data = {each}}));
    std::vector<std::future<rdma_connection>> accepting(count);
    for (std::uint32_t each = 0; each != count; ++each) {
        auto request = std::make_shared<rdma_request>(next());
        const std::uint8_t index = request->private_data()[0];
        ASSERT_LT(index, count);
        ASSERT_FALSE(accepting[index].valid()) << "asks twice";
        accepting[index] = std::async(std::launch::async, [&servers, request, index] {
            return request->accept(servers[index], {.timeout = long_enough});
        });
    }
    std::vector<rdma_connection> all;
    for (std::uint32_t each = 0; each != count; ++each) {
        all.push_back(accepting[each].get());
        all.push_back(asking[each].get());
        expect_write(clients[each]);
    }
    EXPECT_FALSE(listener->try_next());
}

TEST_P(RdmaConnect, TellsThatNobodyListens)
{
    listener.reset();
    const rdma_listener other(passive(), listening_port + 1); // there is a connection manager that answers
    rdma_queue client(active(), ends.where, of_queues);
    const rdma_rejected why = thrown_by<rdma_rejected>([&] { connect(client); });
    EXPECT_EQ(why.code(), errc::not_found);
    EXPECT_EQ(why.reason(), 8);
    EXPECT_THAT(why.what(), HasSubstr("nobody listens at that port of the peer"));
    EXPECT_EQ(client.state(), rdma_state::init) << "it may try again";
}

TEST_P(RdmaConnect, TellsWhyItIsRejected)
{
    rdma_queue client(active(), ends.where, of_queues);
    for (const bool by_a_call : {true, false}) {
        auto asking = begin_to_connect(client);
        std::optional<rdma_request> request = next();
        if (by_a_call)
            request->reject({5, 6}, 3);
        request.reset();
        const rdma_rejected why = thrown_by<rdma_rejected>([&] { asking.get(); });
        EXPECT_EQ(why.code(), errc::closed);
        EXPECT_EQ(why.reason(), by_a_call ? 3 : 28);
        EXPECT_EQ(why.private_data()[1], by_a_call ? 6 : 0);
        EXPECT_EQ(why.private_data().size(), 148u);
        EXPECT_THAT(why.what(), HasSubstr(by_a_call ? "The peer has no resources left" : "program at the peer"));
    }
    auto asking = begin_to_connect(client); // the queue is as it was
    rdma_queue server(passive(), ends.where, of_queues);
    rdma_connection at_server = next().accept(server);
    rdma_connection at_client = asking.get();
    expect_write(client);
}

/// The listener ends while requests wait for it.
TEST_P(RdmaConnect, RejectsWhatWaitsForAListenerThatEnds)
{
    std::atomic<int> requests{0};
    listener.reset();
    listener.emplace(passive(), listening_port, rdma_listen_options{.on_request = [&] { ++requests; }});
    rdma_queue client(active(), ends.where, of_queues);
    auto asking = begin_to_connect(client);
    while (requests == 0)
        std::this_thread::yield();
    listener.reset();
    EXPECT_EQ(thrown_by<rdma_rejected>([&] { asking.get(); }).reason(), 8);
}

TEST_P(RdmaConnect, GivesUpWhenNobodyAnswers)
{
    rdma_queue client(active(), ends.where, of_queues);
    const error no_host =
        thrown_by([&] { rdma_connect(active(), "10.0.0.77", listening_port, client, {.timeout = long_enough}); });
    EXPECT_EQ(no_host.code(), errc::timed_out);
    EXPECT_THAT(no_host.what(), HasSubstr("no host has answered for the MAC"));
    const error no_answer = thrown_by([&] {
        rdma_connect(active(), passive().address(), listening_port, client, {.timeout = std::chrono::milliseconds(50)});
    });
    EXPECT_EQ(no_answer.code(), errc::timed_out);
    EXPECT_THAT(no_answer.what(), HasSubstr("no answer within 50 ms"));
    const error stopped = thrown_by(
        [&] { rdma_connect(active(), passive().address(), listening_port, client, {.stop = [] { return true; }}); });
    EXPECT_EQ(stopped.code(), errc::closed);
    EXPECT_EQ(thrown_by([&] { rdma_listener(passive(), 7).next(std::chrono::milliseconds(20)); }).code(),
              errc::timed_out);
    EXPECT_EQ(client.state(), rdma_state::init);
}

/// The peer has given up when the program accepts.
TEST_P(RdmaConnect, AcceptsNobodyWhoHasGivenUp)
{
    rdma_queue client(active(), ends.where, of_queues), server(passive(), ends.where, of_queues);
    thrown_by([&] {
        rdma_connect(active(), passive().address(), listening_port, client,
                     {.timeout = std::chrono::milliseconds(200)});
    });
    std::optional<rdma_request> late = listener->try_next(); // the REJ may not have come yet
    if (!late)
        return;
    const error why = thrown_by([&] { late->accept(server, {.timeout = long_enough}); });
    EXPECT_EQ(why.code(), errc::closed);
    EXPECT_THAT(why.what(), HasSubstr("has given up"));
    EXPECT_EQ(server.state(), rdma_state::error);
}

/// The smaller path MTU of both ends, wherever it is.
TEST_P(RdmaConnect, UsesThePathMtuThatThePeerAccepts)
{
    rdma_queue_options small = of_queues;
    small.path_mtu = 256;
    rdma_queue client(active(), ends.where, of_queues), server(passive(), ends.where, small);
    auto asking = begin_to_connect(client);
    EXPECT_THAT(thrown_by([&] { next().accept(server); }).what(), HasSubstr("path MTU of 1024, rdma_queue"));
    rdma_request again = next();
    EXPECT_EQ(again.path_mtu(), 256u);
    rdma_connection at_server = again.accept(server, {.timeout = long_enough});
    rdma_connection at_client = asking.get();
    EXPECT_EQ(client.path_mtu(), 256u);
    EXPECT_EQ(server.path_mtu(), 256u);
    expect_write(client);
}

/// The client decides about the timeout's retries of both ends, and each end about those of its peer without a receive.
TEST_P(RdmaConnect, AgreesOnRetries)
{
    rdma_queue_options of_client = of_queues, of_server = of_queues;
    of_client.retry_count = 4;
    of_client.rnr_retry = 6;
    of_server.rnr_retry = 5;
    rdma_queue client(active(), ends.where, of_client), server(passive(), ends.where, of_server);
    auto asking = begin_to_connect(client);
    rdma_connection at_server = next().accept(server, {.timeout = long_enough});
    rdma_connection at_client = asking.get();
    EXPECT_EQ(client.dump().retries_left, 4);
    EXPECT_EQ(server.dump().retries_left, 4);
    EXPECT_EQ(client.dump().rnr_retries_left, 5);
    EXPECT_EQ(server.dump().rnr_retries_left, 6);
}

TEST_P(RdmaConnect, RefusesWrongArguments)
{
    rdma_queue client(active(), ends.where, of_queues), server(passive(), ends.where, of_queues),
        datagrams(active(), ends.where, {.service = rdma_service::datagram}),
        unreliable(passive(), ends.where, {.service = rdma_service::unreliable});
    const auto refused = [&](const char* words, auto&& call) {
        const error why = thrown_by(call);
        EXPECT_EQ(why.code(), errc::invalid_argument) << why.what();
        EXPECT_THAT(why.what(), HasSubstr(words));
    };
    const std::string to = passive().address();
    refused("nobody can listen at port 0", [&] { rdma_connect(active(), to, 0, client); });
    refused("\"server\" is not a host address", [&] { rdma_connect(active(), "server", 1, client); });
    refused("has no IPv6 address", [&] { rdma_connect(active(), "fd00::1", 1, client); });
    refused("57 bytes of private data", [&] { connect(client, {.private_data = bytes_of_user(57)}); });
    refused("the timeout is -1 ms",
            [&] { rdma_connect(active(), to, 1, client, {.timeout = std::chrono::milliseconds(-1)}); });
    refused("it is datagram (UD)", [&] { connect(datagrams); });
    refused("belongs to another rdma_device", [&] { rdma_connect(*ends.devices[1], to, 1, client); });
    refused("the port is 0", [&] { rdma_listener(passive(), 0); });
    refused("the backlog is 0", [&] { rdma_listener(passive(), 1, {.backlog = 0}); });
    const error taken = thrown_by([&] { rdma_listener(passive(), listening_port); });
    EXPECT_EQ(taken.code(), errc::in_use);
    EXPECT_THAT(taken.what(), HasSubstr("listens at port 18515 of 10.0.0."));

    auto asking = begin_to_connect(client);
    rdma_request request = next();
    refused("197 bytes of private data", [&] { request.accept(server, {.private_data = bytes_of_user(197)}); });
    refused("149 bytes of private data", [&] { request.reject(bytes_of_user(149)); });
    refused("is unreliable (UC), the peer's queue pair is reliable (RC)", [&] { request.accept(unreliable); });
    rdma_connection at_server = request.accept(server, {.timeout = long_enough}); // still possible
    rdma_connection at_client = asking.get();
    EXPECT_EQ(thrown_by([&] { request.accept(server); }).code(), errc::closed);
    refused("the state is RTS; reset it first", [&] { connect(client); });
}

TEST_P(RdmaConnect, RefusesASecondDeviceOfThePort)
{
    port& at = ports.get(one_port() ? 0 : 1);
    const rdma_device other(at, {.address = "10.0.0.3"});
    const error why = thrown_by([&] { rdma_listener(other, listening_port); });
    EXPECT_EQ(why.code(), errc::in_use);
    EXPECT_THAT(why.what(), HasSubstr("rdma_device 10.0.0.3: another rdma_device of port"));
    listener.reset();
    rdma_listener(other, listening_port); // its turn
}

/// Nothing is left of a connection that its program has forgotten.
TEST_P(RdmaConnect, EndsWithItsObjects)
{
    for (int round = 0; round != 3; ++round) {
        rdma_queue client(active(), ends.where, of_queues);
        std::optional<rdma_queue> server(std::in_place, passive(), ends.where, of_queues);
        auto asking = begin_to_connect(client);
        std::optional<rdma_connection> at_server = next().accept(*server, {.timeout = long_enough});
        rdma_connection at_client = asking.get();
        server.reset(); // first the queue, then its connection
        at_server.reset();
        EXPECT_TRUE(is_disconnected(at_client));
        listener.reset();
        listener.emplace(passive(), listening_port);
    }
}

} // namespace weftio::test
