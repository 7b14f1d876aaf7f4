// Frames in regions that are named by addresses of their own, and in regions that change.
#include <cstring>
#include <thread>

#include <gmock/gmock.h>

#include "core/undying.hpp"
#include "keys/key_table.hpp"
#include "sending_port.hpp"

namespace weftio::test {
namespace {

using testing::HasSubstr;

class NamedMemory : public testing::Test {
 protected:
    NamedMemory()
    {
        for (std::uint32_t number = 0; number < 8; ++number)
            std::memcpy(static_cast<std::byte*>(room.cpu_address()) + number * 60, numbered(number).data(), 60);
        progress.attach(
            queue, {.on_sent = {}, .on_error = [this](const send_failure& failure) { failures.push_back(failure); }});
    }
    std::vector<bytes> send(std::uint32_t key, std::uint64_t address)
    {
        raw.append(send_entry({ethernet_segments(), {pointer(60, key, address)}}));
        raw.push();
        std::vector<bytes> sent = port.send_all();
        progress.progress();
        return sent;
    }
    /// The entry ends the queue, and the queue is reset.
    void expect_refused(std::uint32_t key, std::uint64_t address, refusal why)
    {
        failures.clear();
        EXPECT_TRUE(send(key, address).empty());
        ASSERT_EQ(failures.size(), 1u);
        EXPECT_THAT(failures[0].text, HasSubstr(explain(why)));
        queue.reset();
        raw = raw_queue(queue);
    }

    device cpu = device::open("cpu");
    sending_port port;
    eth_txq queue{port.get(), cpu, {.entries = 64}};
    raw_queue raw{queue};
    memory room = cpu.allocate(480, memory_kind::cpu_device);
    std::vector<send_failure> failures;
    progress_engine progress;
};

TEST_F(NamedMemory, IsSentFromItsIova)
{
    for (const std::uint64_t iova : {std::uint64_t{0}, std::uint64_t{0x5555}, std::uint64_t(-480)}) {
        const memory_region region(port.get(), room, {.rights = access::none, .iova = iova});
        for (const std::uint32_t number : {0u, 3u, 7u})
            EXPECT_EQ(send(region.lkey(), iova + number * 60), numbered_run(number, 1)) << iova;
        expect_refused(region.lkey(), iova - 1, refusal::outside_region);
        expect_refused(region.lkey(), iova + 421, refusal::outside_region);
        expect_refused(region.lkey(), reinterpret_cast<std::uint64_t>(room.device_address()), refusal::outside_region);
    }
}

TEST_F(NamedMemory, IsRefusedByTheKeyBefore)
{
    memory_region region(port.get(), room);
    const std::uint32_t before = region.lkey();
    const std::uint64_t first = region.iova();
    EXPECT_EQ(send(before, first), numbered_run(0, 1));
    region.rereg({}, 120, 180);
    expect_refused(before, first + 120, refusal::unknown_key);
    EXPECT_EQ(send(region.lkey(), first + 120), numbered_run(2, 1));
    EXPECT_EQ(send(region.lkey(), first + 240), numbered_run(4, 1));
    expect_refused(region.lkey(), first + 119, refusal::outside_region);
    expect_refused(region.lkey(), first + 241, refusal::outside_region);
    region.rereg({.domain = protection_domain::make()});
    expect_refused(region.lkey(), first, refusal::other_domain);
    region.rereg({.iova = 0}, 60);
    EXPECT_EQ(send(region.lkey(), 60), numbered_run(2, 1));
}

TEST_F(NamedMemory, IsRefusedBehindAWaitWhenItChangesMeanwhile)
{
    memory_region region(port.get(), room), other(port.get(), room);
    eth_txq patient(port.get(), cpu, {.entries = 64});
    progress.attach(patient,
                    {.on_sent = {}, .on_error = [this](const send_failure& failure) { failures.push_back(failure); }});
    raw = raw_queue(patient);
    const std::uint64_t deadline_ns = utc_now_ns() + 500'000'000;
    raw.append(wait_entry(eth_txq::timestamp(deadline_ns)));
    raw.append(send_entry({ethernet_segments(), {pointer(60, other.lkey(), other.iova())}}));
    raw.append(send_entry({ethernet_segments(), {pointer(60, region.lkey(), region.iova() + 60)}}));
    raw.push();
    port.run_dry();
    region.rereg({});
    if (utc_now_ns() >= deadline_ns)
        GTEST_SKIP() << "missed: a region that changes before the deadline; this machine stood still";
    std::vector<bytes> sent;
    ASSERT_TRUE(eventually([&] {
        for (bytes& frame : port.send_all())
            sent.push_back(std::move(frame));
        progress.progress();
        return !failures.empty();
    }));
    EXPECT_EQ(sent, numbered_run(0, 1));
    EXPECT_THAT(failures[0].text, HasSubstr(explain(refusal::unknown_key)));
}

/// Each frame is that of one entry or of the other, whole.
TEST_F(NamedMemory, ChangesInPlaceWhileFramesAreSent)
{
    const memory_region region(port.get(), room, {.iova = 0});
    auto& table = core::undying<keys::key_table>();
    auto* const begin = static_cast<std::byte*>(room.cpu_address());
    const auto entry_at = [&](std::uint32_t number) {
        return keys::key_entry{.cpu = begin + number * 60, .base = 0, .bytes = 60, .rights = access::none};
    };
    ASSERT_TRUE(table.change(region.lkey(), entry_at(1)));
    std::atomic<bool> done{false};
    std::thread changes([&] {
        for (std::uint32_t number = 0; !done; number ^= 1)
            table.change(region.lkey(), entry_at(number));
    });
    for (unsigned round = 0; round < 3000; ++round) {
        const std::vector<bytes> sent = send(region.lkey(), 0);
        ASSERT_EQ(sent.size(), 1u);
        ASSERT_TRUE(sent[0] == numbered(0) || sent[0] == numbered(1));
    }
    done = true;
    changes.join();
    ASSERT_TRUE(table.change(region.lkey(), entry_at(5)));
    EXPECT_EQ(send(region.lkey(), 0), numbered_run(5, 1));
}

/// One region changes again and again while frames of another go out.
TEST(NamedMemoryOfAThread, ChangesWhileOthersAreSentFrom)
{
    const device cpu = device::open("cpu");
    const port null = port::open("null", {.idle = idle_policy::yield});
    eth_txq queue(null, cpu, {.entries = 64});
    const memory room = cpu.allocate(4096, memory_kind::cpu_device);
    memory_region changing(null, room);
    const buf_arr frames(null, cpu, {.count = 1, .buffer_bytes = 60});
    std::atomic<bool> done{false};
    std::thread changes([&] {
        for (std::size_t round = 0; !done; ++round)
            changing.rereg({.rights = round % 2 ? access::none : access::local_write}, round % 64, 64);
    });
    for (unsigned round = 0; round < 5000; ++round) {
        ASSERT_EQ(weftio_dev_eth_txq_wait_room(queue.handle(), 1, patience_ns), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), weftio_dev_buf_get(frames.handle(), 0), 60, 0),
                  WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_eth_txq_commit_strong(queue.handle()), WEFTIO_DEV_OK);
        weftio_dev_eth_txq_push(queue.handle());
    }
    EXPECT_TRUE(eventually([&] { return queue.counters().sent == 5000; }));
    done = true;
    changes.join();
    EXPECT_FALSE(queue.failed());
}

} // namespace
} // namespace weftio::test
