// What a connected queue pair costs in memory of the host, beside its rings.
#include <fmt/format.h>
#include <malloc.h>

#include "devices/cpu/sanitizers.hpp"
#include "public_pair.hpp"
#include "two_ends.hpp"

namespace weftio::test {

namespace {

constexpr std::size_t goal_bytes = 8192;
constexpr std::uint32_t depth = 64;
constexpr unsigned connections = 32, queue_pairs = 2 * connections;

/// Entries, marks of filled entries, completions and doorbell records of one queue pair (docs/formats.md).
constexpr std::size_t ring_bytes = depth * WEFTIO_WQE_BLOCK_BYTES + 2 * 64 +
                                   depth * (sizeof(weftio_cqe) + WEFTIO_WQE_SEGMENT_BYTES) + 64 +
                                   2 * depth * sizeof(weftio_u32);

/// Bytes that the program has of the allocator, and where the device's memory for NICs ends.
struct standing {
    explicit standing(const device& of)
        : allocated(mallinfo2().uordblks), next(of.allocate(1, memory_kind::cpu_device, 128)),
          end(reinterpret_cast<std::uintptr_t>(next.cpu_address()))
    {}
    std::size_t operator-(const standing& before) const { return allocated - before.allocated + (end - before.end); }

    std::size_t allocated;
    memory next;
    std::uintptr_t end;
};

class RdmaSize : public testing::TestWithParam<bool> {
 protected:
    void SetUp() override
    {
#if defined(WEFTIO_ASAN) || defined(WEFTIO_TSAN)
        GTEST_SKIP() << "the allocator of a sanitizer does not tell how much it has given";
#endif
        for (unsigned end = 0; end < 2; ++end)
            devices_[end].emplace(
                ports.get(GetParam() ? 0 : end),
                rdma_device_options{.address = end == 0 ? "10.0.0.1" : "10.0.0.2", .application_turns = true});
        connect(2); // what the first ones of a port bring is no part of a queue pair
        queues.reserve(2 + queue_pairs + 2);
    }
    void connect(unsigned count)
    {
        const std::size_t first = queues.size();
        for (unsigned made = 0; made < count; ++made)
            queues.emplace_back(*devices_[made % 2], cpu,
                                rdma_queue_options{.entries = depth, .receive_entries = depth});
        for (std::size_t at = first; at < queues.size(); ++at)
            queues[at].connect(queues[at ^ 1].address());
    }
    std::size_t bytes_of_each(const standing& before, const standing& now) const
    {
        const std::size_t each = (now - before) / queue_pairs - ring_bytes;
        RecordProperty("bytes", fmt::format("{}", each));
        return each;
    }

    wired_ports ports{engine_mode::inline_worker};
    device cpu = device::open("cpu");
    std::array<std::optional<rdma_device>, 2> devices_;
    std::vector<rdma_queue> queues;
};

} // namespace

TEST_P(RdmaSize, AConnectedQueuePairTakesEightKiBBesideItsRings)
{
    const standing before(cpu);
    connect(queue_pairs);
    EXPECT_LE(bytes_of_each(before, standing(cpu)), goal_bytes);
}

TEST_P(RdmaSize, AQueuePairWithAReadUnderWayTakesEightKiBBesideItsRings)
{
    end_memory ours(ports.get(0), cpu, 64, {.rights = all_rights});
    end_memory theirs(ports.get(GetParam() ? 0 : 1), cpu, 64, {.rights = all_rights});
    const standing before(cpu);
    connect(queue_pairs);
    for (std::size_t at = 2; at < queues.size(); at += 2) {
        ASSERT_EQ(weftio_dev_rdma_read(queues[at].handle(), remote_region::of(theirs.region).on_device(), 0,
                                       ours.region.buffer(), 0, 8, 0),
                  WEFTIO_DEV_OK);
        weftio_dev_rdma_commit(queues[at].handle());
    }
    ports.get(0).turn();
    EXPECT_LE(bytes_of_each(before, standing(cpu)), goal_bytes);
}

TEST(RdmaPool, GetsBackWhatAQueuePairHadUnderWayWhenThatSleepsRestartsOrFails)
{
    for (const ends_at& where : all_ends) {
        SCOPED_TRACE(name_of(where));
        two_ends ends(where);
        const auto under_way = [&] { return ends.unit(0).bytes_under_way() + ends.unit(1).bytes_under_way(); };
        const auto sleep = [&] {
            for (unsigned turn = 0; turn < 2 * nic::soft::work_list::turns_awake; ++turn)
                ends.run();
        };
        ends.connect();
        EXPECT_EQ(under_way(), 0u);
        for (unsigned read = 0; read < 20; ++read)
            ends.queue(0).post(WEFTIO_OPCODE_RDMA_READ,
                               {ends.memory(1).remote_at(0), ends.memory(0).local(64 * read, 64)});
        ends.queue(0).push();
        ends.run();
        EXPECT_EQ(ends.queue(0).sent().position, 19u);
        EXPECT_NE(under_way(), 0u);
        sleep();
        EXPECT_EQ(under_way(), 0u);
        ends.queue(0).post(WEFTIO_OPCODE_RDMA_READ,
                           {remote(ends.memory(1).address() + two_ends::memory_bytes, ends.memory(1).region.lkey()),
                            ends.memory(0).local(0, 64)});
        ends.queue(0).push();
        sleep();
        EXPECT_NE(ends.queue(0).sent().syndrome, 0);
        EXPECT_EQ(under_way(), 0u);
        ends.queue(0).restart();
        ends.queue(1).restart();
        ends.connect();
        ends.queue(0).post(WEFTIO_OPCODE_RDMA_READ, {ends.memory(1).remote_at(0), ends.memory(0).local(0, 64)});
        ends.queue(0).push();
        ends.at(0).turn();
        EXPECT_NE(under_way(), 0u);
        ends.queue(0).restart();
        ends.queue(1).restart();
        EXPECT_EQ(under_way(), 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(Ends, RdmaSize, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "OnePort" : "TwoPorts"); });

} // namespace weftio::test
