// Telemetry of many queues, as dpdk-telemetry.py asks for it: a reply has 16 KiB at most, and all of them are shown.
#include <gtest/gtest.h>
#include <rte_eal.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ask.hpp"
#include "storage/statistics.hpp"
#include "unit/device/fixture.hpp"
#include "unit/rdma/public_pair.hpp"
#include "unit/rdma/two_ends.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {
namespace {

/// The number under `name`, as in `"total":300`.
std::optional<unsigned> number_of(std::string_view reply, const std::string& name)
{
    const std::size_t at = reply.find('"' + name + "\":");
    unsigned value = 0;
    if (at == std::string_view::npos)
        return std::nullopt;
    const char* begin = reply.data() + at + name.size() + 3;
    begin += *begin == ' ' ? 1 : 0;
    return std::from_chars(begin, reply.data() + reply.size(), value).ec == std::errc{} ? std::optional(value)
                                                                                        : std::nullopt;
}

/// Whether there is a row under that number.
bool has_row(std::string_view reply, unsigned number)
{
    const std::string name = '"' + std::to_string(number) + "\":";
    return reply.find(name + '{') != std::string_view::npos || reply.find(name + " {") != std::string_view::npos;
}

/// Follows the pages of `command`, whose rows are numbered from `first` on. Returns how often each of `count` was
/// shown.
std::vector<unsigned> shown_by(const std::string& command, unsigned first, unsigned count)
{
    std::vector<unsigned> shown(count);
    std::optional<unsigned> next;
    for (unsigned page = 0; page <= count; ++page) {
        const std::string reply = ask(next ? command + "," + std::to_string(*next) : command);
        EXPECT_EQ(number_of(reply, "total"), count) << reply;
        for (unsigned row = 0; row < count; ++row)
            shown[row] += has_row(reply, first + row);
        next = number_of(reply, "next");
        if (!next)
            break;
    }
    EXPECT_FALSE(next) << "the pages do not end";
    return shown;
}

class TelemetryPages : public testing::Test {
 protected:
    static constexpr unsigned count = 300;

    /// The port's number in commands.
    static std::string id()
    {
        const std::string ports = ask("/weftio/ports"); // {"/weftio/ports":{"0":"loopback"}}
        const std::size_t at = ports.find(":{\"");
        return at == std::string::npos ? "?" : ports.substr(at + 3, ports.find('"', at + 3) - at - 3);
    }

    device cpu = device::open("cpu");
    port wire = port::open("loopback", {.mode = engine_mode::inline_worker});
    const std::vector<unsigned> each_once = std::vector<unsigned>(count, 1);
};

TEST_F(TelemetryPages, ShowEveryEngineOfFilesAtEachLevel)
{
    std::deque<storage::tally> engines;
    for (unsigned made = 0; made < 20; ++made) {
        storage::tally& counts = engines.emplace_back(3u);
        for (std::size_t size = 1; size < std::size_t{1} << 30; size *= 2)
            for (unsigned way = 0; way < static_cast<unsigned>(file_way::count_); ++way)
                for (const auto what : {storage::io::kind::read, storage::io::kind::write, storage::io::kind::sync}) {
                    storage::measured how = counts.begin(size, {});
                    how.gpu = static_cast<int>(size % 16);
                    counts.add(what, {.way = static_cast<file_way>(way)}, how);
                }
    }
    for (const char* command : {"/weftio/file", "/weftio/file_sizes", "/weftio/file_gpus"}) {
        const std::string first = ask(command);
        EXPECT_EQ(number_of(first, "total"), 20u) << first;
        unsigned pages = 1;
        for (auto next = number_of(first, "next"); next && pages <= 20; ++pages) {
            const std::string reply = ask(command + ("," + std::to_string(*next)));
            EXPECT_TRUE(has_row(reply, *next)) << reply;
            next = number_of(reply, "next");
        }
        EXPECT_EQ(pages, std::string_view(command) == "/weftio/file" ? 4u : 20u) << command;
    }
    EXPECT_EQ(number_of(ask("/weftio/file"), "uring_read_operations"), 30u);
    EXPECT_EQ(number_of(ask("/weftio/file_sizes"), "posix_write_4096"), 1u);
}

TEST_F(TelemetryPages, ShowEverySendQueue)
{
    std::deque<eth_txq> queues;
    for (unsigned made = 0; made < count; ++made)
        queues.emplace_back(wire, cpu, eth_txq_options{.entries = 64});
    EXPECT_EQ(shown_by("/weftio/eth_txq," + id(), 1, count), each_once);
}

TEST_F(TelemetryPages, ShowEveryReceiveQueueAndRule)
{
    std::deque<eth_rxq> queues;
    std::deque<flow> flows;
    for (unsigned made = 0; made < count; ++made) {
        queues.emplace_back(wire, cpu, eth_rxq_options{.packets = 64, .max_packet_bytes = 64});
        flows.emplace_back(wire, flow_match{.vlan = static_cast<std::uint16_t>(made)}, flow_action::to(queues.back()));
    }
    EXPECT_EQ(shown_by("/weftio/eth_rxq," + id(), 0, count), each_once);
    EXPECT_EQ(shown_by("/weftio/flow," + id(), 0, count), each_once);
}

TEST_F(TelemetryPages, ShowEveryQueuePair)
{
    std::deque<fake_pair> pairs;
    for (unsigned made = 0; made < count; ++made)
        pairs.emplace_back(wire, 64, 64);
    const std::string command = "/weftio/rdma_queue," + id();
    EXPECT_EQ(shown_by(command, pairs.front().number(), count), each_once);
    const std::string reply = ask(command + "," + std::to_string(pairs.front().number()));
    for (const char* name : {"out_of_sequence", "duplicate_request", "packet_seq_err", "local_ack_timeout_err",
                             "rnr_nak_retry_err", "flushed", "receive_flushed"})
        EXPECT_EQ(number_of(reply, name), 0u) << name << reply;
    EXPECT_EQ(number_of(ask("/weftio/port," + id()), "rx_icrc_encapsulated"), 0u);
    EXPECT_EQ(number_of(ask("/weftio/port," + id()), "rdma_sent"), 0u);
}

TEST_F(TelemetryPages, ShowWhatAQueuePairWaitsFor)
{
    const fake_pair pair(wire, 64, 64);
    const std::string command = "/weftio/rdma_dump," + id() + ",";
    const std::string reply = ask(command + std::to_string(pair.number()));
    EXPECT_EQ(number_of(reply, "number"), pair.number()) << reply;
    EXPECT_EQ(number_of(reply, "committed"), 0u);
    EXPECT_NE(reply.find("\"state\":\"INIT\""), std::string::npos) << reply;
    EXPECT_NE(reply.find("\"awaits\":\"nothing\""), std::string::npos) << reply;
    for (const char* none : {"0", "1", "99999"})
        EXPECT_EQ(ask(command + none), "{\"/weftio/rdma_dump\":null}") << none;
}

TEST_F(TelemetryPages, ShowEverySemaphore)
{
    std::deque<semaphore> semaphores;
    for (unsigned made = 0; made < count; ++made)
        semaphores.emplace_back(cpu, semaphore_options{.items = 2});
    EXPECT_EQ(shown_by("/weftio/semaphore", 0, count), each_once);
}

TEST_F(TelemetryPages, BeginWhereTheyAreToldToAndRefuseOtherWords)
{
    eth_txq first(wire, cpu, {.entries = 64}), second(wire, cpu, {.entries = 64});
    const std::string reply = ask("/weftio/eth_txq," + id() + ",2");
    EXPECT_FALSE(has_row(reply, 1)) << reply;
    EXPECT_TRUE(has_row(reply, 2)) << reply;
    EXPECT_EQ(number_of(reply, "total"), 2u);
    for (const char* wrong : {",", ",x", ",1,", ",1,1", ",-1", ",99999999999"})
        EXPECT_EQ(number_of(ask("/weftio/eth_txq," + id() + wrong), "total"), std::nullopt) << wrong;
}

/// A page begins at every row, holds as many as fit, and names the row behind its last one.
TEST_F(TelemetryPages, SayHowManyRowsThereAreAndWhichIsNext)
{
    constexpr unsigned rows = 130, of_a_page = 24;
    std::deque<eth_txq> queues;
    for (unsigned made = 0; made < rows; ++made)
        queues.emplace_back(wire, cpu, eth_txq_options{.entries = 64});
    const std::string command = "/weftio/eth_txq," + id() + ",";
    for (unsigned first = 1; first <= rows; ++first) {
        const std::string reply = ask(command + std::to_string(first));
        const unsigned behind = first + of_a_page;
        EXPECT_EQ(number_of(reply, "total"), rows) << first;
        EXPECT_EQ(number_of(reply, "next"), behind <= rows ? std::optional(behind) : std::nullopt) << first;
        EXPECT_TRUE(has_row(reply, std::min(behind - 1, rows))) << first;
        EXPECT_FALSE(has_row(reply, behind)) << first;
    }
}

TEST_F(TelemetryPages, CountPacketsAndBytesOfARule)
{
    const memory bytes = cpu.allocate(64, memory_kind::cpu_device);
    const memory_region region(wire, bytes);
    eth_rxq to(wire, cpu, {.packets = 64, .max_packet_bytes = 64});
    eth_txq from(wire, cpu, {.entries = 64});
    const flow all(wire, {}, flow_action::to(to));
    for (int frame = 0; frame < 3; ++frame)
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(from.handle(), region.buffer(), 60, WEFTIO_DEV_SEND_NONE),
                  WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_eth_txq_commit_strong(from.handle()), WEFTIO_DEV_OK);
    weftio_dev_eth_txq_push(from.handle());
    ASSERT_TRUE(eventually([&] {
        wire.turn();
        return to.counters().delivered == 3;
    }));
    const std::string reply = ask("/weftio/flow," + id());
    EXPECT_EQ(number_of(reply, "packets"), 3u) << reply;
    EXPECT_EQ(number_of(reply, "bytes"), 180u) << reply;
}

/// A WRITE of 8 bytes within this port: a copy, which counts once at each end and needs no ACK.
TEST_F(TelemetryPages, CountPacketsOfQueuePairs)
{
    queue_ends ends({&wire, &wire}, engine_mode::inline_worker);
    ends.connect();
    ASSERT_EQ(weftio_dev_rdma_write(ends.queue(0).handle(), ends.remote(1), 32, ends.buffer(0), 0, 8, 0),
              WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_commit_wait(ends.queue(0).handle(), 0), WEFTIO_DEV_OK);
    const std::string reply = ask("/weftio/port," + id());
    EXPECT_EQ(number_of(reply, "rdma_sent"), 1u) << reply;
    EXPECT_EQ(number_of(reply, "rdma_sent_bytes"), 8u) << "a copy within the port has no headers" << reply;
    EXPECT_EQ(number_of(reply, "rdma_received"), 1u) << reply;
    EXPECT_EQ(number_of(reply, "rdma_delivered"), 1u) << reply;
    for (int again = 0; again < 100; ++again)
        ASSERT_EQ(ask("/weftio/port," + id()), reply);
}

TEST_F(TelemetryPages, OfAPortThatIsNotThereAreRefused)
{
    for (const char* command : {"/weftio/port,77", "/weftio/eth_txq,77", "/weftio/flow,77"}) {
        const std::string reply = ask(command);
        EXPECT_NE(reply, "") << command;
        EXPECT_EQ(reply.find('{', 1), std::string::npos) << reply;
    }
    EXPECT_NE(ask("/weftio/port," + id()).find("loopback"), std::string::npos);
}

/// What `dpdk-telemetry.py -f telemetry_test` looks for.
TEST_F(TelemetryPages, AreUnderTheNameOfTheProgram)
{
    EXPECT_EQ(std::filesystem::path(rte_eal_get_runtime_dir()).filename(), "telemetry_test");
}

} // namespace
} // namespace weftio::test
