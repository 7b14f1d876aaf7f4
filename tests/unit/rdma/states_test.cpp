// Queue pairs go through verbs' states, and do in each what verbs say.
#include <sys/mman.h>

#include <functional>

#include <gmock/gmock.h>

#include "posted_ends.hpp"
#include "software_nic.hpp"

namespace weftio::test {

namespace {

using namespace reported_as;
using enum rdma_state;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::array all_states{reset, init, ready_to_receive, ready_to_send, send_queue_drained, send_queue_error,
                                error};
/// Attributes by the letters of `way`.
struct attribute {
    char letter;
    const char* name;
    void (*set)(queue_pair_attributes&, const rdma_peer&);
};
constexpr std::array attributes{
    attribute{'k', "partition_key", [](auto& with, auto&) { with.partition_key = std::uint16_t{0xffff}; }},
    attribute{'a', "rights", [](auto& with, auto&) { with.rights = access::remote_write; }},
    attribute{'v', "peer_address",
              [](auto& with, const auto& peer) {
                  with.peer_address = peer.address;
                  with.peer_mac = peer.mac;
              }},
    attribute{'m', "path_mtu", [](auto& with, auto&) { with.path_mtu = 512; }},
    attribute{'q', "peer_queue", [](auto& with, const auto& peer) { with.peer_queue = peer.queue; }},
    attribute{'y', "queue_key", [](auto& with, auto&) { with.queue_key = 9; }},
    attribute{'p', "receive_psn", [](auto& with, auto&) { with.receive_psn = 7; }},
    attribute{'s', "send_psn", [](auto& with, auto&) { with.send_psn = 8; }},
    attribute{'d', "most_reads_of_peer", [](auto& with, auto&) { with.most_reads_of_peer = std::uint8_t{4}; }},
    attribute{'r', "most_reads", [](auto& with, auto&) { with.most_reads = std::uint8_t{4}; }},
    attribute{'n', "min_rnr_timer", [](auto& with, auto&) { with.min_rnr_timer = std::uint8_t{1}; }},
    attribute{'t', "timeout", [](auto& with, auto&) { with.timeout = std::uint8_t{18}; }},
    attribute{'c', "retry_count", [](auto& with, auto&) { with.retry_count = std::uint8_t{7}; }},
    attribute{'w', "rnr_retry", [](auto& with, auto&) { with.rnr_retry = std::uint8_t{7}; }},
};

/// ibv_modify_qp(3), and the tables of InfiniBand 11.2.5.2 for what may be set.
struct way {
    rdma_service service;
    rdma_state from, to;
    std::string must, may;
};
constexpr rdma_service rc = rdma_service::reliable, uc = rdma_service::unreliable, ud = rdma_service::datagram;
const std::vector<way> table{
    {rc, reset, init, "ka", ""},
    {rc, init, init, "", "ka"},
    {rc, init, ready_to_receive, "vmqpdn", "ka"},
    {rc, ready_to_receive, ready_to_send, "stcwr", "an"},
    {rc, ready_to_send, ready_to_send, "", "an"},
    {rc, ready_to_send, send_queue_drained, "", ""},
    {rc, send_queue_drained, send_queue_drained, "", "vkadrtcwn"},
    {rc, send_queue_drained, ready_to_send, "", "an"},
    {uc, reset, init, "ka", ""},
    {uc, init, init, "", "ka"},
    {uc, init, ready_to_receive, "vmqp", "ka"},
    {uc, ready_to_receive, ready_to_send, "s", "a"},
    {uc, ready_to_send, ready_to_send, "", "a"},
    {uc, ready_to_send, send_queue_drained, "", ""},
    {uc, send_queue_drained, send_queue_drained, "", "vka"},
    {uc, send_queue_drained, ready_to_send, "", "a"},
    {uc, send_queue_error, ready_to_send, "", "a"},
    {ud, reset, init, "ky", ""},
    {ud, init, init, "", "ky"},
    {ud, init, ready_to_receive, "", "ky"},
    {ud, ready_to_receive, ready_to_send, "s", "y"},
    {ud, ready_to_send, ready_to_send, "", "y"},
    {ud, ready_to_send, send_queue_drained, "", ""},
    {ud, send_queue_drained, send_queue_drained, "", "ky"},
    {ud, send_queue_drained, ready_to_send, "", "y"},
    {ud, send_queue_error, ready_to_send, "", "y"},
};
std::optional<way> way_of(rdma_service service, rdma_state from, rdma_state to)
{
    if (to == reset || to == error)
        return way{service, from, to, "", ""};
    for (const way& each : table)
        if (each.service == service && each.from == from && each.to == to)
            return each;
    return std::nullopt;
}

bool holds(const std::string& letters, char letter)
{
    return letters.find(letter) != std::string::npos;
}

class QueuePairStates : public testing::TestWithParam<rdma_service> {
 protected:
    queue_pair& pair() { return *ends.pair(0); }
    queue_pair_attributes with(const std::string& letters)
    {
        queue_pair_attributes set;
        const rdma_peer peer = GetParam() == ud ? rdma_peer{.address = "10.0.0.2"} : ends.self(1);
        for (const attribute& each : attributes)
            if (holds(letters, each.letter))
                each.set(set, peer);
        return set;
    }
    /// Brings the queue pair from RESET to a state.
    void reach(rdma_state state)
    {
        pair().modify(reset);
        ends.pair(0).forget();
        if (state == reset)
            return;
        pair().modify(init, with(way_of(GetParam(), reset, init)->must));
        for (const rdma_state next : {ready_to_receive, ready_to_send})
            if (state != init && state != error && pair().state() < state)
                pair().modify(next, with(way_of(GetParam(), pair().state(), next)->must));
        if (state == send_queue_drained || state == error)
            pair().modify(state);
        if (state == send_queue_error)
            ends.post_bad(0);
        ends.poll(0);
        ASSERT_EQ(pair().state(), state);
    }
    /// @return what it says
    std::string refused(rdma_state to, const queue_pair_attributes& set)
    {
        const rdma_state before = pair().state();
        const class error thrown = error_of([&] { pair().modify(to, set); });
        EXPECT_EQ(thrown.code(), errc::invalid_argument);
        EXPECT_EQ(pair().state(), before);
        return thrown.what();
    }
    void try_all(rdma_state from, rdma_state to)
    {
        const std::optional<way> known = way_of(GetParam(), from, to);
        SCOPED_TRACE(std::string(to_string(from)) + " to " + to_string(to));
        ASSERT_NO_FATAL_FAILURE(reach(from));
        if (!known) {
            EXPECT_THAT(refused(to, {}), HasSubstr(to_string(to)));
            return;
        }
        for (const attribute& each : attributes) {
            std::string letters = known->must;
            if (holds(known->must, each.letter))
                std::erase(letters, each.letter);
            else if (!holds(known->may, each.letter))
                letters += each.letter;
            else
                continue;
            EXPECT_THAT(refused(to, with(letters)), HasSubstr(each.name));
        }
        for (const std::string& more : {std::string{}, known->may}) {
            ASSERT_NO_FATAL_FAILURE(reach(from));
            EXPECT_NO_THROW(pair().modify(to, with(known->must + more)));
            EXPECT_EQ(pair().state(), to);
        }
    }

    void try_all()
    {
        for (const rdma_state from : all_states)
            for (const rdma_state to : all_states)
                if (from != send_queue_error || GetParam() != rc) // RC has no SQE
                    try_all(from, to);
    }

    verbs_ends ends{{.service = GetParam()}};
};

/// Of queue pairs without a connection.
class DatagramStates : public QueuePairStates {};
INSTANTIATE_TEST_SUITE_P(Of, DatagramStates, testing::Values(ud), [](const auto&) { return "UD"; });

} // namespace

TEST_P(QueuePairStates, GoFromEachToEachAsVerbsSay)
{
    try_all();
}

TEST_P(DatagramStates, GoFromEachToEachAsVerbsSay)
{
    try_all();
}

TEST_P(QueuePairStates, ConnectFromResetAndInitOnly)
{
    rdma_peer peer = ends.self(1);
    peer.most_reads = 200; // more than this end has
    for (const rdma_state from : {reset, init}) {
        ASSERT_NO_FATAL_FAILURE(reach(from));
        pair().connect(rdma_address::of(peer));
        EXPECT_EQ(pair().state(), ready_to_send);
        EXPECT_EQ(pair().dump().service, GetParam());
        EXPECT_EQ(pair().dump().path_mtu, 1024u);
    }
    EXPECT_THAT(error_of([&] { pair().connect(rdma_address::of(peer)); }).what(),
                HasSubstr("connect() needs RESET or INIT, but the state is RTS; reset it first"));
    ASSERT_NO_FATAL_FAILURE(reach(reset));
    peer.service = GetParam() == rc ? uc : rc;
    EXPECT_THAT(error_of([&] { pair().connect(rdma_address::of(peer)); }).what(),
                HasSubstr("set the same queue_pair_options::service at both ends"));
    EXPECT_EQ(pair().state(), reset);
}

TEST_P(QueuePairStates, RefuseValuesThatVerbsDoNotHave)
{
    const bool reliable = GetParam() == rc;
    using value = std::function<void(queue_pair_attributes&)>;
    const auto expect_refused = [&](rdma_state from, rdma_state to, const std::string& name, const value& set) {
        reach(from);
        queue_pair_attributes wrong = with(way_of(GetParam(), from, to)->must);
        set(wrong);
        EXPECT_THAT(refused(to, wrong), HasSubstr(name));
    };
    expect_refused(reset, init, "rights", [](auto& with) { with.rights = static_cast<access>(16); });
    for (const std::uint32_t mtu : {0u, 255u, 1000u, 2048u, 8192u}) // the port has an MTU of 1500
        expect_refused(init, ready_to_receive, "path_mtu", [&](auto& with) { with.path_mtu = mtu; });
    expect_refused(init, ready_to_receive, "peer_queue", [](auto& with) { with.peer_queue = 1u << 24; });
    expect_refused(init, ready_to_receive, "receive_psn", [](auto& with) { with.receive_psn = 1u << 24; });
    expect_refused(init, ready_to_receive, "peer_address", [](auto& with) { with.peer_address = "10.0.0"; });
    expect_refused(init, ready_to_receive, "fd00::1", [](auto& with) { with.peer_address = "fd00::1"; });
    expect_refused(ready_to_receive, ready_to_send, "send_psn", [](auto& with) { with.send_psn = 1u << 24; });
    if (!reliable)
        return;
    expect_refused(init, ready_to_receive, "most_reads_of_peer",
                   [](auto& with) { with.most_reads_of_peer = std::uint8_t{17}; });
    expect_refused(init, ready_to_receive, "min_rnr_timer", [](auto& with) { with.min_rnr_timer = std::uint8_t{32}; });
    expect_refused(ready_to_receive, ready_to_send, "most_reads",
                   [](auto& with) { with.most_reads = std::uint8_t{17}; });
    expect_refused(ready_to_receive, ready_to_send, "timeout", [](auto& with) { with.timeout = std::uint8_t{32}; });
    expect_refused(ready_to_receive, ready_to_send, "retry_count",
                   [](auto& with) { with.retry_count = std::uint8_t{8}; });
    expect_refused(ready_to_receive, ready_to_send, "rnr_retry", [](auto& with) { with.rnr_retry = std::uint8_t{8}; });
}

TEST_P(QueuePairStates, RefuseAMacWithoutAnAddress)
{
    reach(ready_to_send);
    EXPECT_THAT(refused(ready_to_send, {.peer_mac = std::array<std::uint8_t, 6>{2}}), HasSubstr("peer_mac"));
}

INSTANTIATE_TEST_SUITE_P(Of, QueuePairStates, testing::Values(rc, uc),
                         [](const auto& info) { return std::string(info.param == rc ? "RC" : "UC"); });

TEST_P(QueuePairStates, BeginAgainAtIndexZeroBehindReset)
{
    constexpr unsigned cycles = 100;
    for (unsigned cycle = 0; cycle < cycles; ++cycle) {
        ends.connect();
        ends.receive(1);
        ends.send(0, 64);
        EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{sent, 0, 0}));
        EXPECT_THAT(reported_by(ends.poll(1)), ElementsAre(reported{received, 0, 0}));
        ends.receive(1, 200000);
        ends.send(0, 200000);
        for (unsigned turns = 0; turns < cycle % 4; ++turns) { // 200 packets take some
            ends.ports.get(0).turn();
            ends.ports.get(1).turn();
        }
        if (cycle % 3 == 0)
            pair().modify(error);
        for (unsigned end = 0; end < 2; ++end) {
            ends.pair(end).reset();
            ends.poll(end);
        }
    }
}

TEST_P(QueuePairStates, TouchNoMemoryInReset)
{
    ends.connect();
    ends.receive(0);
    ends.send(0, 200000);
    ends.ports.get(0).turn();
    pair().modify(reset);
    ends.poll(0);
    std::memset(pair().send_ring(), 0x5a, 64 * 64);
    std::memset(pair().receive_ring(), 0x5a, 64 * 16);
    std::memset(pair().record(), 0x5a, 8);
    const rdma_counters before = pair().counters();
    for (unsigned turn = 0; turn < 3000; ++turn) // it goes to sleep meanwhile
        ends.ports.get(0).turn();
    EXPECT_EQ(pair().state(), reset);
    EXPECT_EQ(pair().counters().enqueued, before.enqueued);
    EXPECT_EQ(pair().counters().received, before.received);
    EXPECT_THAT(ends.poll(0), IsEmpty());
    ends.pair(0).forget();
    ends.pair(1).reset();
    ends.connect();
    ends.receive(0);
    ends.send(1, 64);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{received, 0, 0}));
}

TEST_P(QueuePairStates, TakeReceivesFromInitOnAndEntriesFromRtsOn)
{
    pair().modify(init, init_attributes());
    ends.receive(0);
    pair().modify(ready_to_receive, receive_attributes(ends.self(1)));
    ends.connect(1, ready_to_send);
    ends.send(1, 100);
    ends.write(0, 50);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{received, 0, 0}));
    EXPECT_THAT(reported_by(ends.poll(1)), ElementsAre(reported{sent, 0, 0}));
    pair().modify(ready_to_send, send_attributes(GetParam()));
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{sent, 0, 0}));
}

TEST_P(QueuePairStates, EndWhatWasBegunInSqdAndBeginNothing)
{
    ends.connect();
    ends.write(0, 200000);
    ends.ports.get(0).turn(); // 64 packets
    pair().modify(send_queue_drained);
    EXPECT_TRUE(pair().draining());
    ends.write(0, 64);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{sent, 0, 0}));
    EXPECT_FALSE(pair().draining());
    ends.receive(0);
    ends.send(1, 10);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{received, 0, 0})); // messages arrive
    pair().modify(ready_to_send);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{sent, 1, 0}));
    EXPECT_EQ(std::memcmp(ends.memory(0).data() + 64, ends.memory(1).data() + 64, 200000 - 64), 0);
}

TEST_P(QueuePairStates, GoOnFromSqdThatHasNotDrained)
{
    ends.connect();
    ends.write(0, 200000);
    ends.ports.get(0).turn();
    pair().modify(send_queue_drained);
    pair().modify(ready_to_send);
    ends.write(0, 64);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{sent, 0, 0}, reported{sent, 1, 0}));
}

TEST_P(QueuePairStates, FlushWhatIsPostedAndWhatIsPostedLaterInErr)
{
    ends.connect(ready_to_receive);
    for (unsigned each = 0; each < 3; ++each) {
        ends.receive(0);
        ends.send(0, 8, 0); // asks for no completion
    }
    pair().modify(error);
    EXPECT_THAT(reported_by(ends.poll(0)),
                testing::UnorderedElementsAre(reported{send_error, 0, flushed}, reported{send_error, 1, flushed},
                                              reported{send_error, 2, flushed}, reported{receive_error, 0, flushed},
                                              reported{receive_error, 1, flushed},
                                              reported{receive_error, 2, flushed}));
    for (unsigned turn = 0; turn < 300; ++turn) // it sleeps then
        ends.run();
    ends.receive(0);
    std::vector<completion> later;
    ends.run_until([&] { return !later.empty() || !(later = ends.poll(0)).empty(); });
    EXPECT_THAT(reported_by(later), ElementsAre(reported{receive_error, 3, flushed}));
    ends.send(0, 8, 0);
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{send_error, 3, flushed}));
}

TEST_P(QueuePairStates, StayInErrWhenTheyFailInTheMidstOfAMove)
{
    ends.connect();
    pair().modify(error);
    software_nic(ends.at(0)).rdma().find(pair().number())->modify(ready_to_send, {}, {});
    EXPECT_EQ(pair().state(), error);
}

TEST_P(QueuePairStates, SayNothingOfWhatIsPostedWhenTheyAreReset)
{
    ends.connect();
    for (unsigned each = 0; each < 3; ++each)
        ends.receive(0);
    ends.send(0, 200000);
    ends.ports.get(0).turn();
    pair().modify(reset);
    EXPECT_THAT(ends.poll(0), IsEmpty());
}

TEST_P(QueuePairStates, SayNothingOfWhatIsPostedWhenTheyAreDestroyed)
{
    ends.connect();
    for (unsigned each = 0; each < 3; ++each)
        ends.receive(0);
    ends.send(0, 200000);
    ends.ports.get(0).turn();
    ends.pairs[0].reset();
    EXPECT_THAT(ends.poll(0), IsEmpty());
}

TEST_P(QueuePairStates, ApplyRightsAtOnce)
{
    ends.connect();
    pair().modify(send_queue_drained);
    pair().modify(send_queue_drained, {.rights = access::remote_read});
    ends.write(1, 64);
    const std::vector<reported> said = reported_by(ends.poll(1));
    if (GetParam() == rc) {
        EXPECT_THAT(said, ElementsAre(reported{send_error, 0, WEFTIO_SYNDROME_REMOTE_INVALID}));
    }
    EXPECT_EQ(pair().counters().refused, 1u);
}

TEST_P(QueuePairStates, TakeAsManyReadsAsIsSetInSqd)
{
    if (GetParam() == uc)
        return; // which has no READs
    pair().modify(init, init_attributes());
    queue_pair_attributes few = receive_attributes(ends.self(1));
    few.most_reads_of_peer = std::uint8_t{0};
    pair().modify(ready_to_receive, few);
    pair().modify(ready_to_send, send_attributes(GetParam()));
    ends.connect(1, ready_to_send);
    pair().modify(send_queue_drained);
    pair().modify(send_queue_drained, {.most_reads_of_peer = std::uint8_t{16}});
    for (unsigned each = 0; each < 20; ++each)
        ends.pair(1).post(WEFTIO_OPCODE_RDMA_READ, {ends.memory(0).remote_at(0), ends.memory(1).local(0, 5000)});
    const std::vector<completion> all = ends.poll(1);
    EXPECT_THAT(all, SizeIs(20));
    EXPECT_THAT(all, testing::Each(testing::Field(&completion::syndrome, 0)));
}

TEST_P(QueuePairStates, SendToTheMacThatIsSetInSqd)
{
    ends.connect();
    pair().modify(send_queue_drained);
    pair().modify(send_queue_drained,
                  {.peer_address = ends.self(1).address, .peer_mac = std::array<std::uint8_t, 6>{2, 9, 9, 9, 9, 9}});
    pair().modify(ready_to_send);
    ends.write(0, 64);
    ends.ports.get(0).turn();
    const auto frames = ends.ports.take(1);
    ASSERT_THAT(frames, SizeIs(1));
    EXPECT_THAT(std::vector(frames[0].begin(), frames[0].begin() + 6), ElementsAre(2, 9, 9, 9, 9, 9));
}

TEST_P(QueuePairStates, RefuseAttributesWhileTheyDrain)
{
    ends.connect();
    ends.write(0, 200000);
    ends.ports.get(0).turn();
    pair().modify(send_queue_drained);
    EXPECT_THAT(refused(send_queue_drained, {.rights = access::remote_read}), HasSubstr("drain"));
    ends.poll(0);
    EXPECT_NO_THROW(pair().modify(send_queue_drained, {.rights = access::remote_read}));
}

TEST(QueuePairReset, IsOutOfAllMemoryOfTheQueuePair)
{
    verbs_ends ends;
    constexpr std::size_t bytes = 16384;
    void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    {
        const memory rings = ends.cpu.adopt(pages, bytes);
        ends.pairs[0].emplace(
            *ends.devices[0], ends.cpu, *ends.completions[0], *ends.completions[0],
            queue_pair_options{.send_ring = {&rings, 0}, .receive_ring = {&rings, 8192}, .record = {&rings, 12288}});
        ends.connect();
        ends.receive(0);
        ends.send(0, 200000);
        ends.ports.get(0).turn();
        ends.pair(0)->modify(reset);
        ASSERT_EQ(mprotect(pages, bytes, PROT_NONE), 0);
        for (unsigned turn = 0; turn < 3000; ++turn) // it goes to sleep meanwhile
            ends.ports.get(0).turn();
        ASSERT_EQ(mprotect(pages, bytes, PROT_READ | PROT_WRITE), 0);
        EXPECT_EQ(ends.pair(0)->state(), reset);
        ends.pairs[0].reset();
    }
    munmap(pages, bytes);
}

TEST(QueuePairReset, ReadsNoRecordBeforeInit)
{
    verbs_ends ends;
    const memory record = ends.cpu.allocate(64, memory_kind::cpu_device);
    std::memset(record.cpu_address(), 0x21, 64);
    posted_pair pair(*ends.devices[0], ends.cpu, *ends.completions[0], *ends.completions[0], {.record = {&record, 8}});
    EXPECT_THAT(ends.poll(0), IsEmpty());
    EXPECT_EQ(pair->counters().enqueued, 0u);
    EXPECT_EQ(pair->state(), reset);
    pair.forget();
    pair->modify(init, init_attributes());
    ends.run();
    EXPECT_EQ(pair->state(), init);
}

} // namespace weftio::test
