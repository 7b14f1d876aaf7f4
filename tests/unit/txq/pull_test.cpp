// Frames in memory that the CPU does not see: a device's copy engine brings them to the host, when the test says so.
#include <algorithm>
#include <cstring>
#include <future>
#include <random>
#include <thread>

#include <gmock/gmock.h>

#include "fleeting_memory.hpp"
#include "sending_port.hpp"
#include "software_nic.hpp"
#include "unit/device/fake_gpu.hpp"

namespace weftio::test {
namespace {

using testing::HasSubstr;

class Pull : public testing::Test {
 protected:
    Pull()
    {
        std::minstd_rand random(3);
        for (std::size_t at = 0; at < room; ++at) {
            there.bytes()[at] = static_cast<std::byte>(random() >> 7);
            static_cast<std::byte*>(here.cpu_address())[at] = static_cast<std::byte>(random() >> 7);
        }
        progress.attach(
            queue, {.on_sent = {}, .on_error = [this](const send_failure& failure) { failures.push_back(failure); }});
    }
    ~Pull() override { copies.fail(); } // what is still under way must not be waited for

    segment gpu_piece(std::uint32_t bytes, std::size_t at) { return piece(there, bytes, at); }
    static segment piece(fake_gpu_memory& memory, std::uint32_t bytes, std::size_t at)
    {
        return pointer(bytes, memory.lkey(), reinterpret_cast<std::uint64_t>(memory.bytes() + at));
    }
    segment host_piece(std::uint32_t bytes, std::size_t at) const
    {
        return pointer(bytes, region.lkey(), reinterpret_cast<std::uint64_t>(here.device_address()) + at);
    }
    bytes there_at(std::size_t at, std::size_t count) { return copy_of(there.bytes() + at, count); }
    static bytes copy_of(const void* from, std::size_t count)
    {
        bytes copied(count);
        std::memcpy(copied.data(), from, count);
        return copied;
    }
    void push(const std::vector<entry_words>& entries)
    {
        for (const entry_words& entry : entries)
            raw.append(entry);
        raw.push();
        port.run_dry();
    }
    std::vector<bytes> complete_all()
    {
        copies.complete_all();
        std::vector<bytes> sent = port.send_all();
        progress.progress();
        return sent;
    }

    static constexpr std::size_t room = 65536;
    static constexpr std::uint64_t ms = 1'000'000;
    device cpu = device::open("cpu");
    sending_port port;
    std::shared_ptr<fake_gpu> gpu = std::make_shared<fake_gpu>();
    slow_copies& copies = *gpu->copies;
    fake_gpu_memory there{port.get(), gpu, room};
    memory here = cpu.allocate(room, memory_kind::cpu_device);
    memory_region region{port.get(), here};
    eth_txq queue{port.get(), cpu, {.entries = 1024}};
    raw_queue raw{queue};
    std::vector<send_failure> failures;
    progress_engine progress;
};

TEST_F(Pull, SendsAFrameOnceItHasBeenBrought)
{
    push({send_entry({ethernet_segments(), {gpu_piece(100, 5)}})});
    EXPECT_EQ(port.on_the_wire(), 0u);
    EXPECT_EQ(weftio_dev_eth_txq_completed(queue.handle()), 0u) << "the kernel may not write there yet";
    EXPECT_EQ(complete_all(), std::vector<bytes>{there_at(5, 100)});
    EXPECT_EQ(weftio_dev_eth_txq_completed(queue.handle()), 1u);
    EXPECT_EQ(queue.counters().copied_bytes, 100u);
    EXPECT_TRUE(conserves(queue.counters()));
}

/// Pieces of all kinds, brought at random times, beside frames that lie in the host's memory.
TEST_F(Pull, SendsWhatAModelSendsInOrder)
{
    std::minstd_rand random(5);
    std::vector<bytes> expected, sent;
    auto take = [&] {
        for (bytes& frame : port.send_all())
            sent.push_back(std::move(frame));
    };
    for (unsigned step = 0; step < 2000; ++step) {
        entry_words parts;
        bytes frame;
        for (std::size_t piece = 1 + random() % 4; piece != 0; --piece) {
            const auto count = static_cast<std::uint32_t>(1 + random() % 300);
            const std::size_t at = random() % (room - count);
            const bool on_gpu = random() % 3 != 0;
            parts.push_back(on_gpu ? gpu_piece(count, at) : host_piece(count, at));
            const bytes content =
                on_gpu ? there_at(at, count) : copy_of(static_cast<std::byte*>(here.cpu_address()) + at, count);
            frame.insert(frame.end(), content.begin(), content.end());
        }
        frame.resize(std::max<std::size_t>(frame.size(), 60));
        expected.push_back(std::move(frame));
        raw.append(send_entry({ethernet_segments(), parts}));
        if (random() % 8 != 0 && step % 100 != 99)
            continue;
        raw.push();
        port.run_dry();
        while (random() % 3 != 0 && copies.batches_under_way()) {
            copies.complete_one();
            take();
        }
        take();
        if (step % 100 == 99)
            while (sent.size() != expected.size()) {
                copies.complete_all();
                take();
            }
    }
    EXPECT_EQ(sent, expected);
    EXPECT_EQ(queue.counters().sent, expected.size());
    EXPECT_TRUE(conserves(queue.counters()));
}

/// A copy takes as long to start as many frames.
TEST_F(Pull, FramesAtEqualDistancesShareACopy)
{
    std::vector<entry_words> entries;
    std::vector<bytes> expected;
    auto add = [&](std::size_t at, std::uint32_t count) {
        entries.push_back(send_entry({ethernet_segments(), {gpu_piece(count, at)}}));
        expected.push_back(there_at(at, count));
    };
    for (std::size_t number = 0; number < 20; ++number)
        add(5 + number * 100, 70);
    for (std::size_t number = 0; number < 3; ++number)
        add(number * 100, 71); // longer
    add(1000, 71);             // farther
    add(900, 71);              // backwards
    add(950, 71);              // not as far as it is long
    push(entries);
    EXPECT_EQ(copies.copies.size(), 5u);
    EXPECT_EQ(complete_all(), expected);
}

TEST_F(Pull, FillsInChecksumsWhenTheBytesAreThere)
{
    bytes frame = frames::udp4();
    bytes spoiled = frame;
    frames::set(spoiled, 14 + 10, 0xdead);
    frames::set(spoiled, 14 + 20 + 6, 0xbeef);
    std::memcpy(there.bytes(), spoiled.data(), spoiled.size());
    push({send_entry({ethernet_segments({}, WEFTIO_ETH_L3_CHECKSUM | WEFTIO_ETH_L4_CHECKSUM),
                      {gpu_piece(static_cast<std::uint32_t>(spoiled.size()), 0)}})});
    frame.resize(60);
    EXPECT_EQ(complete_all(), std::vector<bytes>{frame});
}

TEST_F(Pull, ANeighborsFramesDoNotWait)
{
    eth_txq neighbor(port.get(), cpu, {.entries = 64});
    raw_queue its(neighbor);
    push({send_entry({ethernet_segments(), {gpu_piece(60, 0)}})});
    its.append(send_entry({ethernet_segments(), {host_piece(60, 0)}}));
    its.push();
    EXPECT_EQ(port.send_all(), std::vector<bytes>{copy_of(here.cpu_address(), 60)});
    EXPECT_EQ(complete_all(), std::vector<bytes>{there_at(0, 60)});
}

TEST_F(Pull, BringsFramesBehindAWaitAheadOfTheirTime)
{
    const std::uint64_t deadline_ns = utc_now_ns() + 20 * ms;
    push({wait_entry(eth_txq::timestamp(deadline_ns)), send_entry({ethernet_segments(), {gpu_piece(80, 9)}})});
    EXPECT_EQ(copies.copies.size(), 1u);
    std::vector<bytes> sent;
    ASSERT_TRUE(eventually([&] { return !(sent = complete_all()).empty(); }));
    EXPECT_GE(utc_now_ns(), deadline_ns);
    EXPECT_EQ(sent, std::vector<bytes>{there_at(9, 80)});
    EXPECT_EQ(copies.copies.size(), 0u) << "once";
    EXPECT_TRUE(conserves(queue.counters()));
}

TEST_F(Pull, AFrameBehindAWaitWhoseRegionEndsFails)
{
    const std::uint64_t deadline_ns = utc_now_ns() + 500 * ms;
    push({wait_entry(eth_txq::timestamp(deadline_ns)), send_entry({ethernet_segments(), {gpu_piece(80, 9)}})});
    copies.complete_all();
    there.end();
    if (utc_now_ns() >= deadline_ns)
        GTEST_SKIP() << "missed: a region that ends before the deadline; this machine stood still for half a second";
    ASSERT_TRUE(eventually([&] {
        EXPECT_THAT(port.send_all(), testing::IsEmpty());
        progress.progress();
        return !failures.empty();
    }));
    EXPECT_THAT(failures.at(0).text, HasSubstr("no memory region has that key"));
    EXPECT_TRUE(conserves(queue.counters()));
}

TEST_F(Pull, ADeviceThatFailsFailsTheQueueAndNoOther)
{
    eth_txq neighbor(port.get(), cpu, {.entries = 64});
    raw_queue its(neighbor);
    push({send_entry({ethernet_segments(), {host_piece(70, 0)}}), send_entry({ethernet_segments(), {gpu_piece(60, 0)}}),
          send_entry({ethernet_segments(), {gpu_piece(60, 1)}})});
    copies.fail();
    EXPECT_EQ(port.send_all().size(), 1u) << "the frame in front, which needs no device";
    progress.progress();
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_EQ(failures[0].position, 1u);
    EXPECT_THAT(failures[0].text, HasSubstr("a copy to or from the device's memory failed"));
    its.append(send_entry({ethernet_segments(), {host_piece(60, 0)}}));
    its.push();
    EXPECT_EQ(port.send_all().size(), 1u);
    EXPECT_EQ(queue.counters().flushed, 1u);
    EXPECT_TRUE(conserves(queue.counters()));
}

/// What is in front of the bad entry is under way, and the completion of the bad one comes behind it.
TEST_F(Pull, ADeviceThatFailsBehindABadEntryKeepsNobodyWaiting)
{
    push({send_entry({ethernet_segments(), {gpu_piece(60, 0)}}),
          send_entry({ethernet_segments(), {pointer(60, WEFTIO_LKEY_INVALID, 0)}}),
          send_entry({ethernet_segments(), {gpu_piece(60, 1)}})});
    EXPECT_EQ(weftio_dev_eth_txq_completed(queue.handle()), 0u);
    copies.fail();
    EXPECT_EQ(port.send_all().size(), 0u);
    progress.progress();
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_EQ(failures[0].position, 1u);
    EXPECT_EQ(weftio_dev_eth_txq_status(queue.handle()), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(weftio_dev_eth_txq_completed(queue.handle()), 3u);
    EXPECT_EQ(queue.counters().flushed, 2u);
    EXPECT_TRUE(conserves(queue.counters()));
}

/// Without an IOMMU, or of a driver that keeps sent frames.
TEST_F(Pull, ADriverThatCannotReadSlotsGetsCopies)
{
    nic::soft::soft_port& soft = software_nic(port.get());
    const auto other = std::make_shared<fake_gpu>();
    fake_gpu_memory beside(port.get(), other, 4096);
    std::memset(beside.bytes(), 7, 4096);
    soft.engine().between_turns([&] { soft.sender().pulls().find(other.get())->copy_whole_frames(); });
    push({send_entry({ethernet_segments(), {piece(beside, 100, 0)}}),
          send_entry({ethernet_segments(), {piece(beside, 61, 9)}})});
    other->copies->complete_all();
    port.run_dry();
    EXPECT_EQ(soft.sender().pulls().find(other.get())->free_slots(), nic::soft::pull_stream::slots)
        << "before the driver ends";
    EXPECT_EQ(port.send_all(), (std::vector<bytes>{bytes(100, 7), bytes(61, 7)}));
    EXPECT_TRUE(conserves(queue.counters()));
}

TEST_F(Pull, MoreFramesThanSlotsGoWhenTheDriverGivesSomeBack)
{
    constexpr std::uint32_t count = 900; // more than three times the slots
    for (std::uint32_t number = 0; number < count; ++number)
        raw.append(send_entry({ethernet_segments(), {gpu_piece(64, number)}}));
    raw.push();
    std::vector<rte_mbuf*> held; // the driver keeps them
    std::vector<bytes> sent;
    for (unsigned turn = 0; turn < 40; ++turn) {
        port.run_dry();
        copies.complete_all();
        while (rte_mbuf* frame = port.take_mbuf())
            held.push_back(frame);
    }
    EXPECT_EQ(held.size(), nic::soft::pull_stream::slots);
    for (rte_mbuf* frame : held) {
        sent.push_back(copy_of(rte_pktmbuf_mtod(frame, const void*), frame->data_len));
        rte_pktmbuf_free(frame);
    }
    while (sent.size() < count) {
        copies.complete_all();
        for (bytes& frame : port.send_all())
            sent.push_back(std::move(frame));
    }
    for (std::uint32_t number = 0; number < count; ++number)
        ASSERT_EQ(sent[number], there_at(number, 64)) << number;
    EXPECT_TRUE(conserves(queue.counters()));
}

TEST_F(Pull, FramesThatWaitLeaveSlotsToOthers)
{
    const std::uint64_t deadline_ns = utc_now_ns() + 100 * ms;
    std::vector<entry_words> entries{wait_entry(eth_txq::timestamp(deadline_ns))};
    for (std::size_t number = 0; number < 40; ++number)
        entries.push_back(send_entry({ethernet_segments(), {gpu_piece(64, number)}}));
    push(entries);
    const auto left = software_nic(port.get()).sender().pulls().find(gpu.get())->free_slots();
    if (utc_now_ns() < deadline_ns) { // else it has sent some already
        EXPECT_EQ(left, nic::soft::pull_stream::slots - 16);
    }
    std::vector<bytes> sent;
    EXPECT_TRUE(eventually([&] {
        for (bytes& frame : complete_all())
            sent.push_back(std::move(frame));
        return sent.size() == 40;
    }));
}

TEST_F(Pull, PiecesOfTwoDevicesAreRefused)
{
    const auto other = std::make_shared<fake_gpu>();
    {
        fake_gpu_memory beside(port.get(), other, 4096);
        push({send_entry({ethernet_segments(), {gpu_piece(60, 0), piece(beside, 60, 0)}})});
        progress.progress();
    }
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_THAT(failures[0].text, HasSubstr("the frame has segments on several devices"));
    other->copies->fail();
}

TEST_F(Pull, WhatIsNoMemoryOfTheRegionIsRefused)
{
    push({send_entry({ethernet_segments(), {gpu_piece(100, room - 99)}})});
    progress.progress();
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_THAT(failures[0].text, HasSubstr("the address range exceeds the key's memory region"));
    EXPECT_EQ(copies.copies.size(), 0u);
}

/// Until then the copy engine reads it. In a thread: the destructor blocks.
TEST_F(Pull, ARegionEndsWhenItsFramesHaveBeenBrought)
{
    push({send_entry({ethernet_segments(), {gpu_piece(60, 0)}})});
    std::future<void> ending = std::async(std::launch::async, [&] { there.end(); });
    EXPECT_EQ(ending.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    software_nic(port.get()).engine().between_turns([&] { copies.complete_all(); });
    EXPECT_EQ(ending.wait_for(patience), std::future_status::ready);
    EXPECT_EQ(port.send_all(), std::vector<bytes>{there_at(0, 60)});
}

/// In this thread: nothing waits for the copy.
TEST_F(Pull, ARegionWhoseCopiesNobodyAwaitsEndsAtOnce)
{
    const auto unfinished = std::make_shared<devices::unfinished_copies>();
    fake_gpu_memory other(port.get(), gpu, room, unfinished);
    push({send_entry({ethernet_segments(), {piece(other, 100, 5)}})});
    ASSERT_TRUE(copies.batches_under_way());
    EXPECT_TRUE(unfinished->ended()) << "its key is there";
    other.end();
    EXPECT_FALSE(unfinished->ended());
    EXPECT_EQ(complete_all().size(), 1u);
    EXPECT_TRUE(unfinished->ended());
}

TEST_F(Pull, AFrameWhoseNearPieceHasGoneFailsAndGivesItsSlotBack)
{
    fleeting_memory fleeting(leaving::unmapped);
    const memory adopted = cpu.adopt(fleeting.data(), fleeting.bytes());
    const memory_region gone(port.get(), adopted);
    fleeting.go();
    push(
        {send_entry({ethernet_segments(), {gpu_piece(100, 3)}}),
         send_entry({ethernet_segments(),
                     {gpu_piece(60, 0), pointer(60, gone.lkey(), reinterpret_cast<std::uint64_t>(fleeting.data()))}})});
    std::vector<bytes> sent = complete_all();
    if (sent.empty())
        sent = complete_all();
    EXPECT_EQ(sent, std::vector<bytes>{there_at(3, 100)}) << "the one before it is sent";
    progress.progress();
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_EQ(failures[0].position, 1u);
    EXPECT_THAT(failures[0].text, HasSubstr(gone_words));
    EXPECT_TRUE(conserves(queue.counters()));
    copies.complete_all();
    port.run_dry();
    EXPECT_EQ(software_nic(port.get()).sender().pulls().find(gpu.get())->free_slots(), nic::soft::pull_stream::slots);
}

TEST_F(Pull, AStoppedQueueGivesItsSlotsBack)
{
    for (unsigned round = 0; round < 20; ++round) {
        push({send_entry({ethernet_segments(), {gpu_piece(60, round)}}),
              send_entry({ethernet_segments(), {gpu_piece(61, round)}})});
        queue.reset();
        raw = raw_queue(queue);
    }
    EXPECT_TRUE(conserves(queue.counters()));
    copies.complete_all();
    push({send_entry({ethernet_segments(), {gpu_piece(60, 77)}})});
    EXPECT_EQ(complete_all(), std::vector<bytes>{there_at(77, 60)});
    auto& streams = software_nic(port.get()).sender().pulls();
    port.run_dry();
    EXPECT_EQ(streams.find(gpu.get())->free_slots(), nic::soft::pull_stream::slots);
}

/// What is under way to a slot would destroy what the CPU has written there since.
TEST_F(Pull, ASlotIsTakenAgainWhenNothingIsUnderWayToIt)
{
    for (std::uint32_t slot = 0; slot < nic::soft::pull_stream::slots; ++slot) {
        push({send_entry({ethernet_segments(), {gpu_piece(60, slot)}})});
        queue.reset();
        raw = raw_queue(queue);
    }
    push({send_entry({ethernet_segments(), {host_piece(40, 7), gpu_piece(40, 7)}})});
    bytes expected = copy_of(static_cast<std::byte*>(here.cpu_address()) + 7, 40), rest = there_at(7, 40);
    expected.insert(expected.end(), rest.begin(), rest.end());
    std::vector<bytes> sent = complete_all();
    if (sent.empty())
        sent = complete_all();
    EXPECT_EQ(sent, std::vector<bytes>{expected});
}

} // namespace
} // namespace weftio::test
