// The host's side of RDMA: what is refused, how a queue pair stands, how it fails and comes back.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

#include "public_pair.hpp"

namespace weftio::test {

namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string words_of(const std::function<void()>& call)
{
    const error refused = error_of(call);
    EXPECT_EQ(refused.code(), errc::invalid_argument) << refused.what();
    return refused.what();
}

/// What the progress_engine reported of each end.
class reported_failures {
 public:
    explicit reported_failures(public_pair& ends) : ends_(ends)
    {
        for (unsigned end = 0; end < 2; ++end)
            progress_.attach(ends.queue(end),
                             {.on_error = [this, end](const send_failure& failure) { of_[end].push_back(failure); }});
    }
    /// The first failure of an end, once it is reported.
    send_failure first(unsigned end)
    {
        EXPECT_TRUE(eventually([&] {
            ends_.turn();
            progress_.progress();
            return !of_[end].empty();
        }));
        return of_[end].empty() ? send_failure{} : of_[end].front();
    }

 private:
    public_pair& ends_;
    progress_engine progress_;
    std::array<std::vector<send_failure>, 2> of_;
};

class RdmaQueue : public testing::TestWithParam<place_of_ends> {
 protected:
    weftio_dev_rdma* a() { return ends.queue(0).handle(); }
    weftio_dev_rdma_recv* b() { return ends.queue(1).receives().handle(); }
    std::int32_t write(weftio_dev_remote peer, std::uint64_t bytes = 8)
    {
        EXPECT_EQ(weftio_dev_rdma_write(a(), peer, 0, ends.buffer(0), 0, bytes, 0), WEFTIO_DEV_OK);
        return weftio_dev_rdma_commit_wait(a(), 0);
    }

    public_pair ends{GetParam()};
};

} // namespace

TEST_P(RdmaQueue, IsInitThenReadyToSendThenInErrorUntilItIsReset)
{
    EXPECT_EQ(ends.queue(0).state(), rdma_state::init);
    EXPECT_STREQ(to_string(ends.queue(0).state()), "INIT");
    ends.connect();
    EXPECT_STREQ(to_string(ends.queue(0).state()), "RTS");
    EXPECT_EQ(write(ends.remote(1)), WEFTIO_DEV_OK);
    weftio_dev_remote wrong = ends.remote(1);
    wrong.rkey_be ^= 1;
    EXPECT_EQ(write(wrong), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_STREQ(to_string(ends.queue(0).state()), "ERR");
    EXPECT_TRUE(eventually([&] {
        ends.turn();
        return ends.queue(1).state() == rdma_state::error;
    }));
    EXPECT_EQ(weftio_dev_rdma_recv_status(b()), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_THAT(words_of([&] { ends.connect(); }),
                HasSubstr("connect() needs RESET or INIT, but the state is ERR; reset it first"));
    const rdma_address before = ends.queue(0).address();
    ends.queue(0).reset();
    EXPECT_EQ(ends.queue(0).state(), rdma_state::init);
    ends.reset();
    EXPECT_NE(ends.queue(0).address(), before) << "packets of the connection before are out of sequence";
    EXPECT_EQ(ends.queue(0).state(), rdma_state::ready_to_send);
    EXPECT_EQ(write(ends.remote(1), 40000), WEFTIO_DEV_OK);
    EXPECT_EQ(std::memcmp(ends.memory(0).data(), ends.memory(1).data(), 40000), 0);
    EXPECT_EQ(ends.queue(0).counters().failed, 1u) << "counters go on";
    EXPECT_EQ(ends.queue(0).counters().done, 2u);
}

TEST_P(RdmaQueue, IsNotStoppedByTheWatchdogOfAnEarlierRing)
{
    const auto before = detail::internals::line(ends.queue(0));
    ends.queue(0).reset();
    before->quiesce();
    EXPECT_FALSE(ends.queue(0).failed());
    detail::internals::line(ends.queue(0))->quiesce();
    EXPECT_TRUE(ends.queue(0).failed());
}

/// The handle of the receive ring points at the completion of the send ring.
TEST_P(RdmaQueue, KeepsBothRingsForAKernelThatHasTheReceivesOnly)
{
    const auto sends = detail::internals::line(ends.queue(0));
    const auto receives = detail::internals::line(ends.queue(0).receives());
    EXPECT_FALSE(sends.owner_before(receives) || receives.owner_before(sends));
    const auto* const completion = ends.queue(0).receives().handle()->connection;
    ends.reset();
    EXPECT_NE(ends.queue(0).receives().handle()->connection, completion) << "it is that of the present ring";
}

TEST_P(RdmaQueue, TakesThePathMtuThatThePortHasRoomForAndNoMore)
{
    const std::uint32_t most = ends.devices[0]->most_path_mtu();
    const rdma_queue largest(*ends.devices[0], ends.where, {.path_mtu = most});
    EXPECT_EQ(largest.path_mtu(), most);
    EXPECT_THAT(words_of([&] { (void)rdma_queue(*ends.devices[0], ends.where, {.path_mtu = 2 * most}); }),
                HasSubstr(fmt::format("allows {}", most)));
}

TEST_P(RdmaQueue, ExecutesWhatWasEnqueuedBeforeItIsConnected)
{
    ASSERT_EQ(weftio_dev_rdma_recv_post(b(), ends.buffer(1), 0, 8), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_commit(b()), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_send_imm(a(), ends.buffer(0), 0, 8, 3, WEFTIO_DEV_SEND_NONE), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_commit(a()), WEFTIO_DEV_OK);
    ends.connect();
    EXPECT_EQ(weftio_dev_rdma_commit_wait(a(), 0), WEFTIO_DEV_OK);
    weftio_u32 count = 0, first = 0;
    EXPECT_EQ(weftio_dev_rdma_recv_wait(b(), 1, 0, &count, &first), WEFTIO_DEV_OK);
}

TEST_P(RdmaQueue, TellsBothHostsWhyAPeerWasRefused)
{
    const end_memory readable(ends.ports.get(GetParam().one_port ? 0 : 1), ends.where, 4096,
                              {.rights = access::local_write | access::remote_read});
    weftio_dev_remote no_key = ends.remote(1), too_long = ends.remote(1);
    no_key.rkey_be ^= 1;
    too_long.bytes += 1;
    too_long.address += public_pair::memory_bytes - 7;
    const std::vector<std::pair<weftio_dev_remote, const char*>> cases{
        {no_key, "no memory region has that key"},
        {too_long, "the address range exceeds the key's memory region"},
        {remote_region::of(readable.region).on_device(),
         "the key's memory region or window lacks access::remote_write"}};
    for (const auto& [peer, why] : cases) {
        ends.reset();
        reported_failures reported(ends);
        const std::vector<std::uint8_t> before = ends.memory(1).copy();
        EXPECT_EQ(write(peer), WEFTIO_DEV_QUEUE_ERROR) << why;
        EXPECT_EQ(ends.memory(1).copy(), before);
        const send_failure ours = reported.first(0), theirs = reported.first(1);
        EXPECT_EQ(ours.what, outcome_of::send_ring);
        EXPECT_EQ(ours.syndrome, WEFTIO_SYNDROME_REMOTE_ACCESS) << ours.text;
        EXPECT_EQ(theirs.what, outcome_of::none);
        EXPECT_THAT(theirs.text, AllOf(HasSubstr("the peer's WRITE was refused"), HasSubstr(why)));
    }
}

TEST_P(RdmaQueue, CountsTheRefusalsThatNobodyWasToldOf)
{
    weftio_dev_remote no_key = ends.remote(1);
    no_key.rkey_be ^= 1;
    constexpr std::uint64_t refused = 12;
    for (std::uint64_t each = 0; each < refused; ++each) {
        ends.reset();
        EXPECT_EQ(write(no_key), WEFTIO_DEV_QUEUE_ERROR);
    }
    const std::uint64_t lost = ends.queue(1).counters().lost_events;
    EXPECT_GT(lost, 0u);
    std::uint64_t reported = 0;
    progress_engine progress;
    progress.attach(ends.queue(1), {.on_error = [&](const send_failure&) { ++reported; }});
    EXPECT_TRUE(eventually([&] {
        progress.progress();
        return reported + lost >= refused;
    }));
    EXPECT_EQ(reported + lost, refused);
}

TEST_P(RdmaQueue, TellsKernelAndHostOfAReceiveThatIsTooShort)
{
    ends.connect();
    reported_failures reported(ends);
    for (std::uint32_t bytes : {100u, 8u, 100u}) {
        ASSERT_EQ(weftio_dev_rdma_recv_post(b(), ends.buffer(1), 0, bytes), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_send(a(), ends.buffer(0), 0, 100, 0), WEFTIO_DEV_OK);
    }
    ASSERT_EQ(weftio_dev_rdma_recv_commit(b()), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_wait(a(), 0), WEFTIO_DEV_QUEUE_ERROR);
    weftio_u32 count = 0, first = 0;
    EXPECT_EQ(weftio_dev_rdma_recv_wait(b(), 1, 0, &count, &first), WEFTIO_DEV_OK) << "it came before the failure";
    EXPECT_EQ(weftio_dev_rdma_recv_wait(b(), 64, 0, &count, &first), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(count, 2u);
    weftio_dev_rdma_message message{};
    EXPECT_EQ(weftio_dev_rdma_recv_message(b(), first, &message), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(message.syndrome, WEFTIO_SYNDROME_LOCAL_LENGTH);
    EXPECT_EQ(message.reason, static_cast<std::uint32_t>(refusal::receive_too_short));
    EXPECT_EQ(weftio_dev_rdma_recv_message(b(), first + 1, &message), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(message.syndrome, WEFTIO_SYNDROME_FLUSHED);
    const send_failure theirs = reported.first(1);
    EXPECT_EQ(theirs.what, outcome_of::receive_ring);
    EXPECT_EQ(theirs.position, 1u);
    EXPECT_THAT(theirs.text, HasSubstr(explain(refusal::receive_too_short)));
    EXPECT_EQ(reported.first(0).syndrome, WEFTIO_SYNDROME_REMOTE_INVALID);
    EXPECT_EQ(weftio_dev_rdma_recv_wait(b(), 1, 0, &count, &first), WEFTIO_DEV_QUEUE_ERROR) << "and none comes";
}

TEST_P(RdmaQueue, NotifiesOfEntriesThatAskForIt)
{
    ends.connect();
    std::vector<std::uint32_t> reported;
    progress_engine progress;
    progress.attach(ends.queue(0),
                    {.on_sent = [&](const send_notification& each) { reported.push_back(each.position); }});
    for (weftio_u32 flags : {WEFTIO_DEV_SEND_NOTIFY, WEFTIO_DEV_SEND_NONE, WEFTIO_DEV_SEND_NOTIFY})
        ASSERT_EQ(weftio_dev_rdma_write(a(), ends.remote(1), 0, ends.buffer(0), 0, 8, flags), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_wait(a(), 0), WEFTIO_DEV_OK);
    EXPECT_TRUE(eventually([&] {
        progress.progress();
        return reported.size() == 2;
    }));
    EXPECT_EQ(reported, (std::vector<std::uint32_t>{0, 2}));
}

TEST_P(RdmaQueue, IsMovedWithItsReceives)
{
    ends.connect();
    const rdma_receives& receives = ends.queue(1).receives();
    rdma_queue moved = std::move(*ends.queues[1]);
    EXPECT_EQ(&moved.receives(), &receives);
    EXPECT_EQ(write(ends.remote(1)), WEFTIO_DEV_OK);
    ends.queues[1].emplace(std::move(moved));
}

INSTANTIATE_TEST_SUITE_P(Of, RdmaQueue, testing::ValuesIn(places_of_ends),
                         [](const auto& info) { return name_of(info.param); });

TEST(RdmaQueueOptions, PutAMessageOfSeveralPiecesWhereEachOfThemSays)
{
    public_pair ends(places_of_ends[0], {.entries = 64, .receive_entries = 64, .receive_segments = 4});
    ends.connect();
    weftio_dev_rdma_recv* const recv = ends.queue(1).receives().handle();
    const weftio_dev_buf to = ends.buffer(1);
    std::vector<std::uint8_t> expected = ends.memory(1).copy();
    ASSERT_EQ(weftio_dev_rdma_recv_post_weak(recv, to, 0, 16, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_add_piece_weak(recv, to, 100, 20, 0, 1), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_add_piece_weak(recv, to, 200, 2000, 0, 2), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_post_weak(recv, to, 4000, 8, 1), WEFTIO_DEV_OK);
    for (std::uint32_t piece : {0u, 4u})
        EXPECT_EQ(weftio_dev_rdma_recv_add_piece_weak(recv, to, 0, 8, 1, piece), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(weftio_dev_rdma_recv_add_piece_weak(recv, to, 0, 0, 1, 1), WEFTIO_DEV_INVALID_ARGUMENT);
    ASSERT_EQ(weftio_dev_rdma_recv_commit_weak(recv, 2), WEFTIO_DEV_OK);
    weftio_dev_rdma* const rdma = ends.queue(0).handle();
    ASSERT_EQ(weftio_dev_rdma_send(rdma, ends.buffer(0), 0, 1536, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_send(rdma, ends.buffer(0), 0, 8, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_wait(rdma, 0), WEFTIO_DEV_OK);
    const std::uint8_t* const sent = ends.memory(0).data();
    std::copy_n(sent, 16, expected.begin());
    std::copy_n(sent + 16, 20, expected.begin() + 100);
    std::copy_n(sent + 36, 1500, expected.begin() + 200);
    std::copy_n(sent, 8, expected.begin() + 4000);
    EXPECT_EQ(ends.memory(1).copy(), expected);
}

TEST(RdmaQueueOptions, LeaveNoPieceOfAReceiveThatWasWrittenAnew)
{
    public_pair ends(places_of_ends[0], {.entries = 64, .receive_entries = 64, .receive_segments = 4});
    ends.connect();
    weftio_dev_rdma_recv* const recv = ends.queue(1).receives().handle();
    const weftio_dev_buf to = ends.buffer(1);
    const std::vector<std::uint8_t> before = ends.memory(1).copy();
    ASSERT_EQ(weftio_dev_rdma_recv_post_weak(recv, to, 0, 8, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_add_piece_weak(recv, to, 100, 20, 0, 1), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_post_weak(recv, to, 0, 8, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_commit_weak(recv, 1), WEFTIO_DEV_OK);
    weftio_dev_rdma* const rdma = ends.queue(0).handle();
    ASSERT_EQ(weftio_dev_rdma_send(rdma, ends.buffer(0), 0, 16, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_wait(rdma, 0), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(ends.memory(1).copy(), before);
}

TEST(RdmaQueueOptions, OfBothEndsMakeTheSmallerPathMtu)
{
    wired_ports ports(engine_mode::inline_worker);
    const rdma_device at(ports.get(0), {.address = "10.0.0.1", .application_turns = true});
    const device cpu = device::open("cpu");
    EXPECT_EQ(at.most_path_mtu(), 1024u);
    rdma_queue one(at, cpu, {.path_mtu = 512}), other(at, cpu);
    EXPECT_EQ(other.path_mtu(), 1024u);
    one.connect(other.address());
    other.connect(one.address());
    EXPECT_EQ(one.path_mtu(), 512u);
    EXPECT_EQ(other.path_mtu(), 512u);
    const end_memory memory(ports.get(0), cpu, 8192, {.rights = all_rights});
    const weftio_dev_remote target = remote_region::of(memory.region, 4096).on_device();
    ASSERT_EQ(weftio_dev_rdma_write(one.handle(), target, 0, memory.region.buffer(), 0, 4096, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_wait(one.handle(), 0), WEFTIO_DEV_OK);
    EXPECT_EQ(std::memcmp(memory.data(), memory.data() + 4096, 4096), 0);
    EXPECT_EQ(one.counters().packets, 8u);
    other.reset();
    EXPECT_EQ(other.path_mtu(), 1024u) << "for the next peer";
    rdma_queue large(at, cpu);
    other.connect(large.address());
    EXPECT_EQ(other.path_mtu(), 1024u);
}

TEST(RdmaQueueFailures, OfAKeyThatCannotBeInvalidatedSaySo)
{
    public_pair ends(places_of_ends[0]);
    ends.connect();
    reported_failures reported(ends);
    weftio_dev_rdma_recv* const recv = ends.queue(1).receives().handle();
    ASSERT_EQ(weftio_dev_rdma_recv_post(recv, ends.buffer(1), 0, 64), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_commit(recv), WEFTIO_DEV_OK);
    const std::uint32_t key = ends.memory(1).region.lkey();
    ASSERT_EQ(weftio_dev_rdma_send_inval(ends.queue(0).handle(), ends.buffer(0), 0, 8, key, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_wait(ends.queue(0).handle(), 0), WEFTIO_DEV_OK) << "the peer is not told";
    EXPECT_THAT(reported.first(1).text, HasSubstr(fmt::format("SEND, which invalidates key {:#x}, was refused", key)));
}

TEST(RdmaQueueOptions, SayWhatThePeerMayAskFor)
{
    public_pair ends(places_of_ends[0], {.entries = 64, .receive_entries = 64, .rights = access::remote_read});
    ends.connect();
    const std::vector<std::uint8_t> before = ends.memory(1).copy();
    reported_failures reported(ends);
    weftio_dev_rdma* const rdma = ends.queue(0).handle();
    ASSERT_EQ(weftio_dev_rdma_read(rdma, ends.remote(1), 0, ends.buffer(0), 0, 8, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_wait(rdma, 0), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_write_value(rdma, ends.remote(1), 0, 1, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_wait(rdma, 0), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(ends.memory(1).copy(), before);
    EXPECT_THAT(reported.first(1).text, HasSubstr("the queue's rights lack access::remote_write"));
}

TEST(RdmaQueueOptions, OfAnUnreliableQueueAllowNoReads)
{
    public_pair ends(places_of_ends[0], {.service = rdma_service::unreliable, .entries = 64, .receive_entries = 64});
    ends.connect();
    weftio_dev_rdma* const rdma = ends.queue(0).handle();
    ASSERT_EQ(weftio_dev_rdma_write(rdma, ends.remote(1), 0, ends.buffer(0), 0, 3000, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_wait(rdma, 0), WEFTIO_DEV_OK);
    EXPECT_TRUE(eventually([&] {
        ends.turn();
        return std::memcmp(ends.memory(0).data(), ends.memory(1).data(), 3000) == 0;
    }));
    reported_failures reported(ends);
    ASSERT_EQ(weftio_dev_rdma_read(rdma, ends.remote(1), 0, ends.buffer(0), 0, 8, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_wait(rdma, 0), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_THAT(reported.first(0).text, HasSubstr("an unreliable queue pair (UC) has no READs, no atomics"));
}

TEST(RdmaQueueOptions, ThatNoQueueHasAreRefusedWithTheirValue)
{
    wired_ports ports(engine_mode::inline_worker);
    const rdma_device at(ports.get(0), {.address = "10.0.0.1", .application_turns = true});
    const device cpu = device::open("cpu");
    const auto refused = [&](const rdma_queue_options& options) {
        return words_of([&] { rdma_queue(at, cpu, options); });
    };
    EXPECT_THAT(refused({.entries = 100}), HasSubstr("rdma_queue: entries is 100; it must be a power of two"));
    EXPECT_THAT(refused({.receive_entries = 32}), HasSubstr("receive_entries is 32"));
    EXPECT_THAT(refused({.receive_segments = 3}), HasSubstr("receive_segments is 3"));
    EXPECT_THAT(refused({.receive_segments = 128}), HasSubstr("receive_segments is 128"));
    EXPECT_THAT(refused({.path_mtu = 1000}), HasSubstr("path_mtu is 1000; set 256"));
    EXPECT_THAT(refused({.path_mtu = 4096}), HasSubstr("path_mtu is 4096, but port net_ring_"));
    EXPECT_THAT(refused({.path_mtu = 4096}), HasSubstr("with its MTU of 1500 allows 1024"));
    EXPECT_THAT(refused({.rights = access::local_write}), HasSubstr("rights are 0x1"));
    EXPECT_THAT(refused({.most_reads = 0}), HasSubstr("most_reads is 0; set 1 to 16"));
    EXPECT_THAT(refused({.most_reads = 17}), HasSubstr("most_reads is 17"));
    EXPECT_THAT(refused({.timeout = 32}), HasSubstr("timeout is 32; set 0 to 31"));
    EXPECT_THAT(refused({.retry_count = 8}), HasSubstr("retry_count is 8"));
    EXPECT_THAT(refused({.rnr_retry = 8}), HasSubstr("rnr_retry is 8"));
    EXPECT_THAT(refused({.min_rnr_timer = 32}), HasSubstr("min_rnr_timer is 32"));
    EXPECT_THAT(refused({.hop_limit = 0}), HasSubstr("hop_limit is 0"));
    EXPECT_THAT(refused({.service = static_cast<rdma_service>(3)}), HasSubstr("service is 3"));
    EXPECT_THAT(refused({.queue_key = 0xf0000000}), HasSubstr("queue_key is 0xf0000000, whose highest bit is set"));
}

TEST(RdmaQueueOptions, ThatDifferAtBothEndsAreRefusedWhenTheyConnect)
{
    wired_ports ports(engine_mode::inline_worker);
    const rdma_device at_four(ports.get(0), {.address = "10.0.0.1", .application_turns = true}),
        at_six(ports.get(0), {.address = "fd00::2", .application_turns = true});
    const device cpu = device::open("cpu");
    rdma_queue four(at_four, cpu), six(at_six, cpu), unreliable(at_four, cpu, {.service = rdma_service::unreliable});
    EXPECT_THAT(words_of([&] { four.connect(six.address()); }),
                HasSubstr("our address 10.0.0.1 is IPv4, the peer's fd00::2 is not"));
    EXPECT_THAT(words_of([&] { six.connect(four.address()); }), HasSubstr("our address fd00::2 is IPv6"));
    EXPECT_THAT(words_of([&] { four.connect(unreliable.address()); }),
                HasSubstr("it is reliable (RC), the peer's is unreliable (UC)"));
    EXPECT_EQ(four.state(), rdma_state::init) << "nothing has changed";
}

TEST(RdmaDevice, IsAPortWithAnAddressAndAnEngineThatAnswers)
{
    const port with_thread = port::open("loopback"),
               inline_port = port::open("null", {.mode = engine_mode::inline_worker});
    const auto refused = [](const port& at, const rdma_device_options& options) {
        return words_of([&] { rdma_device(at, options); });
    };
    EXPECT_THAT(refused(with_thread, {}), HasSubstr("port loopback has no address"));
    for (const char* wrong : {"10.0.0", "10.0.0.1/24", "host", "0.0.0.0", "::", "224.0.0.1", "255.255.255.255",
                              "ff02::1", "127.0.0.1", "::1"})
        EXPECT_THAT(refused(with_thread, {.address = wrong}),
                    HasSubstr(fmt::format("\"{}\" is not a host address", wrong)));
    EXPECT_THAT(refused(inline_port, {.address = "10.0.0.1"}), HasSubstr("port null is in inline mode"));
    EXPECT_THAT(refused(with_thread, {.address = "10.0.0.1", .application_turns = true}),
                HasSubstr("the engine of port loopback has a thread"));
    const rdma_device six(with_thread, {.address = "FD00:0::1"}), mapped(with_thread, {.address = "::ffff:10.0.0.9"});
    EXPECT_EQ(six.address(), "fd00::1");
    EXPECT_TRUE(six.is_ipv6());
    EXPECT_EQ(mapped.address(), "10.0.0.9");
    EXPECT_FALSE(mapped.is_ipv6());
}

TEST(RdmaDevice, ConnectsOverIpv6Too)
{
    wired_ports ports(engine_mode::thread);
    const device cpu = device::open("cpu");
    const rdma_device here(ports.get(0), {.address = "fd00::1"}), there(ports.get(1), {.address = "fd00::2"});
    const end_memory near(ports.get(0), cpu, 4096, {}), target(ports.get(1), cpu, 4096, {.rights = all_rights});
    rdma_queue one(here, cpu), other(there, cpu);
    one.connect(other.address());
    other.connect(one.address());
    ASSERT_EQ(weftio_dev_rdma_write(one.handle(), remote_region::of(target.region).on_device(), 0, near.region.buffer(),
                                    0, 4096, 0),
              WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_wait(one.handle(), 0), WEFTIO_DEV_OK);
    EXPECT_EQ(target.copy(), near.copy());
}

} // namespace weftio::test
