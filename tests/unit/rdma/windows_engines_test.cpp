// Windows of type 1 on a port with several engines: a queue pair of one changes what peers of another one access.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "two_ends.hpp"
#include "window_entry.hpp"

namespace weftio::test {

namespace {

constexpr std::size_t part_bytes = 32768;
constexpr std::uint32_t writes = 60;

/// Queue pair 0 writes to memory of queue pair 1, and a third one, at another engine than that, lends it.
class RdmaWindowEngines : public testing::TestWithParam<std::tuple<bool, engine_mode>> {
 protected:
    static bool threads() { return std::get<engine_mode>(GetParam()) == engine_mode::thread; }
    RdmaWindowEngines()
    {
        for (const auto& each : others) // engines get as many queue pairs each
            if (each->nic().dump().engine != ends.engine(1))
                binder = each.get();
        nic::rdma_connection nowhere = ends.connection(1);
        nowhere.peer_queue = binder->number();
        binder->connect(nowhere);
        std::memset(ends.memory(0).data(), 1, two_ends::memory_bytes);
    }
    bool runs_until(const std::function<bool()>& done)
    {
        return threads() ? eventually(done) : ends.ports.run_until(done, 1);
    }
    std::uint8_t* lent() { return ends.memory(1).data(); }
    std::uint32_t end_binder_entry(std::vector<segment> body)
    {
        const std::uint32_t position = binder->post(WEFTIO_OPCODE_UMR, body, window.rkey(), WEFTIO_CE_ALWAYS);
        binder->push();
        return position;
    }
    bool has_done(std::uint32_t position)
    {
        return binder->sent().position == (position & 0xffff) && binder->sent().syndrome == 0;
    }
    /// Binds the window to a half of the memory, whatever it was bound to. @return position of the entry
    std::uint32_t bind(std::size_t at)
    {
        const window_entry what{.next = window.rkey() + 1,
                                .region = region.lkey(),
                                .address = region.iova() + at,
                                .bytes = part_bytes,
                                .rights = access::remote_write};
        return end_binder_entry(bind_segments(what));
    }
    std::uint32_t unbind() { return end_binder_entry(unbind_segments(window.rkey())); }
    void begin_writes()
    {
        for (std::uint32_t each = 0; each != writes; ++each)
            ends.queue(0).post(WEFTIO_OPCODE_RDMA_WRITE,
                               {remote(region.iova(), window.rkey()), ends.memory(0).local(0, part_bytes)});
        ends.queue(0).push();
    }
    bool writes_are_over() { return ends.queue(0).nic().failed() || ends.queue(0).sent().position == writes - 1; }
    std::uint64_t executed() { return ends.queue(1).nic().counters().executed; }
    /// Packets of the connection before are out of sequence.
    void connect_again()
    {
        const std::uint32_t psn = ++connections * 0x12345 & 0xffffff;
        for (unsigned end = 0; end < 2; ++end) {
            ends.queue(end).restart();
            nic::rdma_connection to = ends.connection(end);
            to.timeout = 0;
            to.path_mtu = 256; // many more packets than may be in flight
            to.send_psn = to.receive_psn = psn;
            ends.queue(end).connect(to);
        }
    }

    two_ends ends{ends_at(std::get<bool>(GetParam()), false, 2), 64, 64, std::get<engine_mode>(GetParam())};
    rdma_device device{ends.at(1), {.address = "10.9.9.9", .application_turns = !threads()}};
    memory_region region{ends.at(1), ends.memory(1).memory, {.rights = access::local_write | access::bind}};
    memory_window window{device, window_type::type_1};
    std::array<std::unique_ptr<fake_pair>, 2> others{std::make_unique<fake_pair>(ends.at(1)),
                                                     std::make_unique<fake_pair>(ends.at(1))};
    fake_pair* binder = nullptr;
    std::uint32_t connections = 0;
};

/// In inline mode.
class RdmaTurnedWindowEngines : public RdmaWindowEngines {};

} // namespace

/// While a peer writes, the window is freed, or bound to other bytes. When that is done, the bytes are ours: they are
/// written here, which ThreadSanitizer sees, and stay so.
TEST_P(RdmaWindowEngines, GiveTheBytesBackWhenAnotherEngineHasChangedTheWindow)
{
    unsigned met = 0;
    for (unsigned round = 0; round != 40; ++round) {
        connect_again();
        const std::uint32_t bound = bind(0);
        ASSERT_TRUE(runs_until([&] { return has_done(bound); })) << round;
        const std::uint64_t before = executed();
        begin_writes();
        ASSERT_TRUE(runs_until([&] { return executed() > before + round % 8 || writes_are_over(); })) << round;
        const std::uint32_t freed = round % 2 == 0 ? unbind() : bind(part_bytes);
        ASSERT_TRUE(runs_until([&] { return has_done(freed); })) << round;
        std::memset(lent(), 2, part_bytes);
        ASSERT_TRUE(runs_until([&] { return writes_are_over(); })) << round;
        met += ends.queue(0).nic().failed();
        ends.queue(1).nic().counters(); // synchronizes with the engine
        ASSERT_EQ(std::count(lent(), lent() + part_bytes, 2), static_cast<std::ptrdiff_t>(part_bytes)) << round;
    }
    EXPECT_GT(met, 0u) << "no WRITE was under way when the window was changed";
}

/// In inline mode an engine that nobody turns is in no turn: who changes the window does not wait for it.
TEST_P(RdmaTurnedWindowEngines, DoNotWaitForAnEngineThatNobodyTurns)
{
    connect_again();
    const unsigned lends = ends.engine(1), binds = 1 - lends;
    const auto turn_until_done = [&](std::uint32_t position) {
        for (unsigned turn = 0; turn != 100 && !has_done(position); ++turn)
            ends.at(1).turn(binds);
        return has_done(position);
    };
    ASSERT_TRUE(turn_until_done(bind(0)));
    begin_writes();
    ASSERT_TRUE(ends.ports.run_until([&] { return executed() > 2; }, 1));
    ASSERT_FALSE(writes_are_over());
    ASSERT_TRUE(turn_until_done(unbind()));
    std::memset(lent(), 2, part_bytes);
    ASSERT_TRUE(ends.ports.run_until([&] { return writes_are_over(); }, 1));
    EXPECT_TRUE(ends.queue(0).nic().failed());
    EXPECT_EQ(std::count(lent(), lent() + part_bytes, 2), static_cast<std::ptrdiff_t>(part_bytes));
}

static std::string name_of_engines(const testing::TestParamInfo<std::tuple<bool, engine_mode>>& of)
{
    return fmt::format("{}{}", std::get<0>(of.param) ? "OnePort" : "TwoPorts",
                       std::get<1>(of.param) == engine_mode::thread ? "Threads" : "Inline");
}

INSTANTIATE_TEST_SUITE_P(At, RdmaWindowEngines,
                         testing::Combine(testing::Bool(),
                                          testing::Values(engine_mode::inline_worker, engine_mode::thread)),
                         name_of_engines);
INSTANTIATE_TEST_SUITE_P(At, RdmaTurnedWindowEngines,
                         testing::Combine(testing::Bool(), testing::Values(engine_mode::inline_worker)),
                         name_of_engines);

} // namespace weftio::test
