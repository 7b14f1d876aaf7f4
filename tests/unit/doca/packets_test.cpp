// Packets between kernels on two devices: what they receive, how slots are used, what pipes decide, when frames leave.
#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "doca_gpunetio_dev_eth_rxq.cuh"
#include "doca_gpunetio_dev_eth_txq.cuh"
#include "doca_gpunetio_weftio.cuh"
#include "two_devices.hpp"

namespace weftio::test {
namespace {

constexpr std::uint32_t frame_bytes = 60;

/// What a kernel tells the test.
struct report {
    std::uint32_t received = 0, calls = 0, wrong = 0;
    std::uint64_t first = 0;
    std::uint32_t numbers[1024] = {};
    std::uint64_t arrival_ns[64] = {};
};

/// Sends `count` frames of the array, round after round, with the strong functions.
void send_strong(doca_gpu_eth_txq* txq, doca_gpu_buf_arr* frames, std::uint32_t count, report* out)
{
    for (std::uint32_t frame = weftio_lane(); frame < count; frame += weftio_block_lanes()) {
        doca_gpu_buf* buf = nullptr;
        if (doca_gpu_dev_buf_get_buf(frames, frame, &buf) != DOCA_SUCCESS ||
            doca_gpu_dev_eth_txq_send_enqueue_strong(txq, buf, frame_bytes, DOCA_GPU_SEND_FLAG_NOTIFY) != DOCA_SUCCESS)
            ++out->wrong;
        if (weftio_lane() == 0) { // a ring that is smaller than the work
            doca_gpu_dev_eth_txq_commit_strong(txq);
            doca_gpu_dev_eth_txq_push(txq);
        }
    }
    weftio_block_barrier();
    if (weftio_lane() == 0 &&
        (doca_gpu_dev_eth_txq_commit_strong(txq) != DOCA_SUCCESS || doca_gpu_dev_eth_txq_push(txq) != DOCA_SUCCESS))
        ++out->wrong;
}

/// Sends `count` frames, a block's lanes at a time, at masked positions.
void send_weak(doca_gpu_eth_txq* txq, doca_gpu_buf_arr* frames, std::uint32_t count, report* out)
{
    std::uint32_t position = 0, mask = 0;
    const std::uint32_t lane = weftio_lane(), lanes = weftio_block_lanes();

    if (doca_gpu_dev_eth_txq_get_info(txq, &position, &mask) != DOCA_SUCCESS)
        ++out->wrong;
    weftio_block_barrier();
    for (std::uint32_t sent = 0; sent < count; sent += lanes) {
        doca_gpu_buf* buf = nullptr;
        doca_gpu_dev_buf_get_buf(frames, sent + lane, &buf);
        if (doca_gpu_dev_eth_txq_send_enqueue_weak(txq, buf, frame_bytes, (position + sent + lane) & mask,
                                                   DOCA_GPU_SEND_FLAG_NONE) != DOCA_SUCCESS)
            ++out->wrong;
        weftio_block_barrier();
        if (lane == 0) {
            doca_gpu_dev_eth_txq_commit_weak(txq, lanes);
            doca_gpu_dev_eth_txq_push(txq);
        }
        weftio_block_barrier();
    }
}

/// Notes what packets of a call say, as a kernel with lanes does.
void note(doca_gpu_eth_rxq* rxq, std::uint32_t count, std::uint64_t first, report* out)
{
    for (std::uint32_t packet = weftio_lane(); packet < count; packet += weftio_block_lanes()) {
        doca_gpu_buf* buf = nullptr;
        std::uintptr_t address = 0;
        weftio_dev_packet described{};
        if (doca_gpu_dev_eth_rxq_get_buf(rxq, first + packet, &buf) != DOCA_SUCCESS ||
            doca_gpu_dev_buf_get_addr(buf, &address) != DOCA_SUCCESS ||
            weftio_doca_eth_rxq_packet(rxq, first + packet, &described) != DOCA_SUCCESS ||
            described.address != reinterpret_cast<std::uint8_t*>(address) || described.bytes != frame_bytes)
            ++out->wrong;
        for (std::uint32_t byte = 0; byte < 40; ++byte) // what a checksum of an old program reads
            out->wrong += reinterpret_cast<std::uint8_t*>(address)[described.bytes + byte] != 0;
        const std::uint32_t place = out->received + packet;
        if (place < 1024)
            out->numbers[place] = sending::number_of(reinterpret_cast<std::uint8_t*>(address));
        if (place < 64)
            out->arrival_ns[place] = described.timestamp_ns;
    }
}

/// Receives until `wanted` packets have come. The results lie where all lanes see them, as in shared memory.
void receive(doca_gpu_eth_rxq* rxq, std::uint32_t wanted, std::uint32_t* count, std::uint64_t* first, report* out)
{
    while (out->received < wanted) {
        if (doca_gpu_dev_eth_rxq_receive_block(rxq, 2048, 1000000, count, first) != DOCA_SUCCESS)
            return;
        if (*count == 0)
            continue; // no barrier of its own, as in the vendor's sample
        note(rxq, *count, *first, out);
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            out->first = *first;
            out->received += *count;
            ++out->calls;
        }
        weftio_block_barrier();
    }
}

class DocaPackets : public DocaDevices {
 protected:
    void make(bool root_is_basic = true)
    {
        in.make_queue(gpu, second);
        receiving::init_flow();
        in.start_port();
        if (root_is_basic)
            in.add_udp_pipe(true);
        out.make_queue(gpu, first);
        out.start();
    }
    void end()
    {
        in.end();
        doca_flow_destroy();
        out.end();
    }
    bool finish(running_kernel& kernel) { return kernel.wait_for(std::chrono::seconds(20)); }

    receiving in;
    sending out;
    report sent{}, got{};
    std::uint32_t count = 0;
    std::uint64_t first_index = 0;
};

TEST_F(DocaPackets, ArriveInOrderWithZerosBehindThem)
{
    make();
    auto receiver = launch(receive, 8u, in.handle, 64u, &count, &first_index, &got);
    auto sender = launch(send_strong, 8u, out.handle, out.array_handle, 64u, &sent);
    ASSERT_TRUE(finish(sender) && finish(receiver));
    EXPECT_EQ(got.received, 64u);
    EXPECT_EQ(got.wrong + sent.wrong, 0u);
    std::uint32_t seen = 0; // lanes enqueue in any order
    for (std::uint32_t packet = 0; packet < 64; ++packet)
        seen += got.numbers[packet] < 64;
    EXPECT_EQ(seen, 64u);
    end();
}

TEST_F(DocaPackets, FillTheRingManyTimesThoughNobodyReleasesThem)
{
    make();
    auto receiver = launch(receive, 4u, in.handle, 1024u, &count, &first_index, &got);
    for (int round = 0; round < 16; ++round) { // never more than half of the ring at once
        auto sender = launch(send_weak, 8u, out.handle, out.array_handle, 64u, &sent);
        ASSERT_TRUE(finish(sender));
        while (DOCA_GPUNETIO_VOLATILE(got.received) < 64u * (static_cast<std::uint32_t>(round) + 1) && receiver.alive())
            std::this_thread::yield();
    }
    ASSERT_TRUE(finish(receiver));
    EXPECT_EQ(got.wrong + sent.wrong, 0u);
    EXPECT_EQ(got.received, 1024u);
    for (std::uint32_t packet = 0; packet < 1024; ++packet)
        ASSERT_EQ(got.numbers[packet], packet % 64) << packet;
    end();
}

/// Receives `wanted` packets in calls of one, and reads the first of them when `first` is not 0 any more.
void hold(doca_gpu_eth_rxq* rxq, std::uint32_t wanted, std::uint64_t* first, report* out)
{
    std::uint64_t index = 0;
    for (std::uint32_t count = 0; out->received < wanted; out->received += count)
        if (doca_gpu_dev_eth_rxq_receive_thread(rxq, 1, 0, &count, &index) != DOCA_SUCCESS)
            return;
    for (std::uint32_t attempt = 0; !DOCA_GPUNETIO_VOLATILE(*first); ++attempt)
        weftio_relax(attempt);
    doca_gpu_buf* buf = nullptr;
    doca_gpu_dev_eth_rxq_get_buf(rxq, index + 1 - wanted, &buf);
    out->numbers[0] = sending::number_of(reinterpret_cast<std::uint8_t*>(buf->address));
}

TEST_F(DocaPackets, StayForHalfARingAfterTheyWereReceived)
{
    make();
    auto receiver = launch(hold, 1u, in.handle, receiving::packets / 2, &first_index, &got);
    for (std::uint32_t round = 0; round < 5; ++round) { // 320 packets, the ring has 256
        auto sender = launch(send_weak, 8u, out.handle, out.array_handle, 64u, &sent);
        ASSERT_TRUE(finish(sender));
        if (round != 1)
            continue;
        while (DOCA_GPUNETIO_VOLATILE(got.received) < receiving::packets / 2 && receiver.alive())
            std::this_thread::yield();
        for (std::uint32_t frame = 0; frame < sending::frames; ++frame)
            out.fill(frame, 5000);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    first_index = 1;
    ASSERT_TRUE(finish(receiver));
    EXPECT_EQ(got.numbers[0], 0u);
    end();
}

TEST_F(DocaPackets, TellTheHostThatTheyHaveLeft)
{
    static std::atomic<std::uint32_t> notified;
    static std::uint16_t last_position;
    static std::uint64_t last_ns;
    notified = 0;
    in.make_queue(gpu, second);
    receiving::init_flow();
    in.start_port();
    in.add_udp_pipe(true);
    out.make_queue(gpu, first);
    DOCA_OK(doca_eth_txq_gpu_event_notify_send_packet_register(
        out.queue,
        [](doca_eth_txq_gpu_event_notify_send_packet* event, doca_data data) {
            EXPECT_EQ(data.u64, 47u);
            EXPECT_EQ(doca_eth_txq_gpu_event_notify_send_packet_get_position(event, &last_position), DOCA_SUCCESS);
            EXPECT_EQ(doca_eth_txq_gpu_event_notify_send_packet_get_timestamp(event, &last_ns), DOCA_SUCCESS);
            ++notified;
        },
        {.u64 = 47}));
    out.start();
    doca_pe* pe = nullptr;
    DOCA_OK(doca_pe_create(&pe));
    DOCA_OK(doca_pe_connect_ctx(pe, doca_eth_txq_as_doca_ctx(out.queue)));
    EXPECT_EQ(doca_pe_connect_ctx(pe, doca_eth_txq_as_doca_ctx(out.queue)), DOCA_ERROR_BAD_STATE);
    auto sender = launch(send_strong, 1u, out.handle, out.array_handle, 10u, &sent);
    ASSERT_TRUE(finish(sender));
    for (auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
         notified < 10 && std::chrono::steady_clock::now() < end;)
        doca_pe_progress(pe);
    EXPECT_EQ(notified, 10u);
    EXPECT_EQ(last_position, 9u);
    EXPECT_GT(last_ns, 1'700'000'000'000'000'000u);
    DOCA_OK(doca_pe_destroy(pe));
    end();
}

/// Sends a frame by a key that nobody has.
void send_by_wrong_key(doca_gpu_eth_txq* txq, doca_gpu_buf_arr* frames)
{
    doca_gpu_buf* buf = nullptr;
    doca_gpu_dev_buf_get_buf(frames, 0, &buf);
    doca_gpu_buf wrong = *buf;
    wrong.key_be = 0x12345678;
    doca_gpu_dev_eth_txq_send_enqueue_strong(txq, buf, frame_bytes, DOCA_GPU_SEND_FLAG_NONE);
    doca_gpu_dev_eth_txq_send_enqueue_strong(txq, &wrong, frame_bytes, DOCA_GPU_SEND_FLAG_NONE);
    doca_gpu_dev_eth_txq_commit_strong(txq);
    doca_gpu_dev_eth_txq_push(txq);
}

TEST_F(DocaPackets, ThatCannotBeSentAreReportedToTheHost)
{
    static std::uint16_t position;
    static std::atomic<std::uint32_t> failed;
    failed = 0;
    in.make_queue(gpu, second);
    receiving::init_flow();
    in.start_port();
    in.add_udp_pipe(true);
    out.make_queue(gpu, first);
    DOCA_OK(doca_eth_txq_gpu_event_error_send_packet_register(
        out.queue,
        [](doca_eth_txq_gpu_event_error_send_packet* event, doca_data) {
            EXPECT_EQ(doca_eth_txq_gpu_event_error_send_packet_get_position(event, &position), DOCA_SUCCESS);
            ++failed;
        },
        {}));
    out.start();
    doca_pe* pe = nullptr;
    DOCA_OK(doca_pe_create(&pe));
    DOCA_OK(doca_pe_connect_ctx(pe, doca_eth_txq_as_doca_ctx(out.queue)));
    auto sender = launch(send_by_wrong_key, 1u, out.handle, out.array_handle);
    ASSERT_TRUE(finish(sender));
    for (auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
         !failed && std::chrono::steady_clock::now() < end;)
        doca_pe_progress(pe);
    EXPECT_EQ(failed, 1u);
    EXPECT_EQ(position, 1u);
    DOCA_OK(doca_pe_destroy(pe));
    end();
}

std::uint64_t now_ns()
{
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Enqueues two bursts at their times, and ends long before.
void send_bursts(doca_gpu_eth_txq* txq, doca_gpu_buf_arr* frames, std::uint64_t first, std::uint64_t second,
                 report* out)
{
    for (const std::uint64_t value : {first, second}) {
        if (doca_gpu_dev_eth_txq_wait_time_enqueue_strong(txq, value, DOCA_GPU_SEND_FLAG_NONE) != DOCA_SUCCESS)
            ++out->wrong;
        doca_gpu_buf* buf = nullptr;
        doca_gpu_dev_buf_get_buf(frames, 3, &buf);
        if (doca_gpu_dev_eth_txq_send_enqueue_strong(txq, buf, frame_bytes, 0) != DOCA_SUCCESS)
            ++out->wrong;
    }
    doca_gpu_dev_eth_txq_commit_strong(txq);
    doca_gpu_dev_eth_txq_push(txq);
}

TEST_F(DocaPackets, LeaveAtTheirTimeAfterTheKernelHasEnded)
{
    make();
    const std::uint64_t start = now_ns() + 50'000'000;
    std::uint64_t values[2] = {};
    DOCA_OK(doca_eth_txq_calculate_timestamp(out.queue, start, &values[0]));
    DOCA_OK(doca_eth_txq_calculate_timestamp(out.queue, start + 30'000'000, &values[1]));
    auto sender = launch(send_bursts, 1u, out.handle, out.array_handle, values[0], values[1], &sent);
    ASSERT_TRUE(finish(sender));
    auto receiver = launch(receive, 1u, in.handle, 2u, &count, &first_index, &got);
    ASSERT_TRUE(finish(receiver));
    EXPECT_EQ(sent.wrong, 0u);
    EXPECT_GE(got.arrival_ns[0], start);
    EXPECT_GE(got.arrival_ns[1], start + 30'000'000);
    end();
}

TEST_F(DocaPackets, FollowTheRootPipeByPriorityAndItsEntriesAsTheyChange)
{
    make(false);
    in.add_udp_pipe(false);
    doca_flow_pipe_cfg* cfg = nullptr;
    doca_flow_pipe* root = nullptr;
    DOCA_OK(doca_flow_pipe_cfg_create(&cfg, in.port));
    DOCA_OK(doca_flow_pipe_cfg_set_type(cfg, DOCA_FLOW_PIPE_CONTROL));
    DOCA_OK(doca_flow_pipe_cfg_set_is_root(cfg, true));
    DOCA_OK(doca_flow_pipe_create(cfg, nullptr, nullptr, &root));
    DOCA_OK(doca_flow_pipe_cfg_destroy(cfg));
    doca_flow_match udp{};
    udp.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
    udp.outer.ip4.next_proto = 17;
    doca_flow_fwd next{};
    next.type = DOCA_FLOW_FWD_PIPE;
    next.next_pipe = in.udp;
    receiving other;
    other.make_queue(gpu, second);
    doca_flow_pipe_entry *to_pipe = nullptr, *to_other = nullptr;
    auto add = [&](std::uint32_t priority, const doca_flow_fwd& fwd, doca_flow_pipe_entry** entry) {
        return doca_flow_pipe_control_add_entry(0, priority, root, &udp, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                nullptr, &fwd, nullptr, entry);
    };
    DOCA_OK(add(3, next, &to_pipe));
    DOCA_OK(add(1, other.to_queue(), &to_other)); // decides first
    report got_by_other{};
    auto sender = launch(send_strong, 1u, out.handle, out.array_handle, 5u, &sent);
    auto receiver = launch(receive, 1u, other.handle, 5u, &count, &first_index, &got_by_other);
    ASSERT_TRUE(finish(sender) && finish(receiver));
    DOCA_OK(doca_flow_pipe_remove_entry(0, 0, to_other));
    sender = launch(send_strong, 1u, out.handle, out.array_handle, 7u, &sent);
    receiver = launch(receive, 1u, in.handle, 7u, &count, &first_index, &got);
    ASSERT_TRUE(finish(sender) && finish(receiver));
    EXPECT_EQ(got.received, 7u);
    for (std::uint32_t packet = 0; packet < 7; ++packet)
        EXPECT_EQ(got.numbers[packet], packet);
    EXPECT_EQ(doca_flow_pipe_remove_entry(0, 0, to_other), DOCA_ERROR_INVALID_VALUE);
    DOCA_OK(doca_ctx_stop(doca_eth_rxq_as_doca_ctx(other.queue)));
    DOCA_OK(doca_eth_rxq_destroy(other.queue));
    other.memory.end();
    end();
}

TEST_F(DocaPackets, ReachAQueueThatWasRestartedAndNoneThatIsStopped)
{
    make();
    auto* ctx = doca_eth_rxq_as_doca_ctx(in.queue);
    auto* memory = static_cast<std::uint8_t*>(in.memory.cpu_memory);
    auto waiting = launch(receive, 2u, in.handle, 5u, &count, &first_index, &got);
    DOCA_OK(doca_ctx_stop(ctx));
    ASSERT_TRUE(finish(waiting)); // its call ends
    std::memset(memory, 0xee, receiving::packets * receiving::bytes);
    auto sender = launch(send_strong, 1u, out.handle, out.array_handle, 9u, &sent);
    ASSERT_TRUE(finish(sender));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::vector<std::uint8_t> untouched(receiving::packets * receiving::bytes, 0xee);
    EXPECT_EQ(std::memcmp(memory, untouched.data(), untouched.size()), 0);
    DOCA_OK(doca_ctx_start(ctx));
    DOCA_OK(doca_eth_rxq_get_gpu_handle(in.queue, &in.handle));
    sender = launch(send_strong, 1u, out.handle, out.array_handle, 3u, &sent);
    auto receiver = launch(receive, 1u, in.handle, 3u, &count, &first_index, &got);
    ASSERT_TRUE(finish(sender) && finish(receiver));
    EXPECT_EQ(got.received, 3u);
    end();
}

/// Waits for a packet that never comes, in a queue that is destroyed meanwhile.
void wait_for_ever(doca_gpu_eth_rxq* rxq, std::uint32_t* count, std::uint64_t* first, report* out)
{
    if (doca_gpu_dev_eth_rxq_receive_block(rxq, 0, 0, count, first) != DOCA_ERROR_SHUTDOWN)
        ++out->wrong;
}

TEST_F(DocaPackets, AreNotWaitedForInAQueueThatIsDestroyedWithoutAStop)
{
    for (int round = 0; round < 5; ++round) {
        receiving doomed, next;
        doomed.make_queue(gpu, second);
        auto waiting = launch(wait_for_ever, 8u, doomed.handle, &count, &first_index, &got);
        const auto* control = doomed.handle->queue->control;
        while (weftio_load_relaxed_u32(&control->beats) < 3)
            std::this_thread::yield();
        DOCA_OK(doca_eth_rxq_destroy(doomed.queue));
        next.make_queue(gpu, second); // where the destroyed queue has been
        ASSERT_TRUE(finish(waiting)) << round;
        ASSERT_EQ(got.wrong, 0u) << round;
        DOCA_OK(doca_eth_rxq_destroy(next.queue));
        doomed.memory.end();
        next.memory.end();
    }
}

TEST_F(DocaPackets, KeepTheMemoryOfADestroyedQueueUntilAReceiveCallHasReturned)
{
    receiving doomed;
    doomed.make_queue(gpu, second);
    auto* control = doomed.handle->queue->control;
    weftio_store_relaxed_u32(&control->function, WEFTIO_DEV_FUNCTION_RECEIVE); // a lane that does not run just now
    std::atomic<bool> has_left = false, was_early = false;
    std::thread destroyer([&] {
        EXPECT_EQ(doca_eth_rxq_destroy(doomed.queue), DOCA_SUCCESS);
        was_early = !has_left;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    has_left = true;
    weftio_store_release_sys_u32(&control->function, WEFTIO_DEV_FUNCTION_NONE);
    destroyer.join();
    EXPECT_FALSE(was_early);
    doomed.memory.end();
}

TEST_F(DocaPackets, OfAFullRingThatNobodyCommitsAreRefused)
{
    make();
    auto fill_ring = [](doca_gpu_eth_txq* txq, doca_gpu_buf_arr* frames, report* result) {
        doca_gpu_buf* buf = nullptr;
        doca_gpu_dev_buf_get_buf(frames, 0, &buf);
        for (std::uint32_t entry = 0; entry <= 256; ++entry)
            result->wrong += doca_gpu_dev_eth_txq_send_enqueue_strong(txq, buf, frame_bytes, 0) == DOCA_ERROR_FULL;
    };
    void (*function)(doca_gpu_eth_txq*, doca_gpu_buf_arr*, report*) = fill_ring;
    auto sender = launch(function, 1u, out.handle, out.array_handle, &sent);
    ASSERT_TRUE(finish(sender));
    EXPECT_EQ(sent.wrong, 1u);
    end();
}

} // namespace
} // namespace weftio::test
