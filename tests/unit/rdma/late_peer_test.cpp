// A peer that is late: its WRITE or READ goes on when the client has given it up and uses its buffer for something
// else. By a region's key it changes or sees the new bytes, which no entry of the client can prevent; by a window that
// the client has invalidated it fails.
#include <algorithm>
#include <cstring>
#include <tuple>

#include <fmt/format.h>

#include "two_ends.hpp"
#include "window_entry.hpp"

namespace weftio::test {

namespace {

enum class lent_by { region, window };

constexpr std::uint8_t before = 1, after = 2, peers = 3; ///< what the buffer has and what the peer writes

/// End 1 is the client. End 0 stands still while the client gives up.
class RdmaLatePeer : public testing::TestWithParam<std::tuple<lent_by, bool>> {
 protected:
    RdmaLatePeer()
    {
        for (unsigned end = 0; end < 2; ++end) {
            nic::rdma_connection to = ends.connection(end);
            to.timeout = 0;
            to.path_mtu = 256; // more packets than may be in flight
            ends.queue(end).connect(to);
        }
        fill(0, peers);
        fill(1, before);
        if (by_window())
            lend();
    }
    static bool by_window() { return std::get<lent_by>(GetParam()) == lent_by::window; }
    static bool has_begun() { return std::get<bool>(GetParam()); } ///< when the client gives up
    void fill(unsigned end, std::uint8_t with) { std::memset(ends.memory(end).data(), with, two_ends::memory_bytes); }
    std::size_t count(unsigned end, std::uint8_t of)
    {
        const std::uint8_t* const bytes = ends.memory(end).data();
        return static_cast<std::size_t>(std::count(bytes, bytes + two_ends::memory_bytes, of));
    }
    /// Only the client's port runs.
    void run_client(std::vector<segment> body)
    {
        fake_pair& by = ends.queue(1);
        const std::uint32_t position = by.post(WEFTIO_OPCODE_UMR, body, window.rkey());
        by.push();
        for (unsigned turn = 0; turn != 100 && by.sent().position != position; ++turn)
            ends.at(1).turn();
        ASSERT_EQ(by.sent().position, position);
        ASSERT_EQ(by.sent().syndrome, 0);
    }
    void lend()
    {
        run_client(bind_segments({.next = window.rkey() + 1,
                                  .region = lendable.lkey(),
                                  .address = lendable.iova(),
                                  .bytes = two_ends::memory_bytes,
                                  .rights = access::remote_write | access::remote_read,
                                  .type = window_type::type_2,
                                  .queue = ends.queue(1).number()}));
    }
    /// The peer accesses the whole buffer, but is late; the client gives up and uses the buffer.
    void be_late(std::uint32_t opcode)
    {
        const std::uint32_t key = by_window() ? window.rkey() : ends.memory(1).region.lkey();
        ends.queue(0).post(opcode, {remote(lendable.iova(), key), ends.memory(0).local(0, two_ends::memory_bytes)});
        ends.queue(0).push();
        if (has_begun()) {
            ends.at(0).turn();
            ends.at(1).turn();
        }
        if (by_window())
            run_client(invalidate_segments(0));
        fill(1, after);
        ends.run();
    }
    void expect_done() { EXPECT_FALSE(ends.queue(0).nic().failed()) << ends.queue(0).reported().text; }
    /// A READ that has begun has lost its memory.
    void expect_refused(refusal why)
    {
        EXPECT_TRUE(ends.queue(0).nic().failed());
        EXPECT_EQ(ends.queue(0).reported().reason, why);
    }

    two_ends ends{false};
    rdma_device device{ends.at(1), {.address = "10.9.9.9", .application_turns = true}};
    memory_region lendable{ends.at(1), ends.memory(1).memory, {.rights = access::local_write | access::bind}};
    memory_window window{device, window_type::type_2};
};

} // namespace

TEST_P(RdmaLatePeer, WritesToTheBufferOnlyIfNoWindowWasTakenBack)
{
    be_late(WEFTIO_OPCODE_RDMA_WRITE);
    if (by_window()) {
        expect_refused(refusal::remote_access);
        EXPECT_EQ(count(1, after), two_ends::memory_bytes);
        return;
    }
    expect_done();
    EXPECT_GT(count(1, peers), 0u);
    EXPECT_EQ(count(1, after) != 0, has_begun()) << "a mix";
    EXPECT_EQ(count(1, after) + count(1, peers), two_ends::memory_bytes);
}

TEST_P(RdmaLatePeer, ReadsTheBufferOnlyIfNoWindowWasTakenBack)
{
    be_late(WEFTIO_OPCODE_RDMA_READ);
    if (by_window()) {
        expect_refused(has_begun() ? refusal::remote_operation : refusal::remote_access);
        EXPECT_EQ(count(0, after), 0u);
        EXPECT_EQ(count(0, before) != 0, has_begun());
        return;
    }
    expect_done();
    EXPECT_GT(count(0, after), 0u);
    EXPECT_EQ(count(0, before) != 0, has_begun()) << "a mix";
    EXPECT_EQ(count(0, after) + count(0, before), two_ends::memory_bytes);
}

INSTANTIATE_TEST_SUITE_P(By, RdmaLatePeer,
                         testing::Combine(testing::Values(lent_by::region, lent_by::window), testing::Bool()),
                         [](const auto& of) {
                             return fmt::format("{}{}", std::get<0>(of.param) == lent_by::window ? "Window" : "Region",
                                                std::get<1>(of.param) ? "HalfDone" : "NotBegun");
                         });

} // namespace weftio::test
