// The end of many memory windows waits for no engine, unless a peer may be in the midst of an access.
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "software_nic.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {

namespace {

/// Keeps the engine of a port in a change, so that whoever waits for the engine waits for this one.
class held_engine {
 public:
    explicit held_engine(const port& port) : holder_([this, &port] { hold(port); })
    {
        EXPECT_TRUE(eventually([&] { return held_.load(); }));
    }
    held_engine(const held_engine&) = delete;
    held_engine& operator=(const held_engine&) = delete;
    ~held_engine() { let_go(); }

    bool sleeps = true; ///< whether it was said to sleep meanwhile
    /// Whether it was still held.
    bool let_go()
    {
        released_ = true;
        if (holder_.joinable())
            holder_.join();
        return in_time_;
    }

 private:
    void hold(const port& port)
    {
        nic::soft::engines& all = software_nic(port).engines();
        all.between_all_turns([&] {
            sleeps = all.sleep();
            held_ = true;
            in_time_ = eventually([&] { return released_.load(); });
        });
    }

    std::atomic<bool> held_{false}, released_{false};
    bool in_time_ = false;
    std::thread holder_;
};

} // namespace

TEST(RdmaWindowsEnd, WaitsForNoEngineIfTheyWereNeverBound)
{
    for (const unsigned engines : {1u, 2u}) {
        const port at = port::open("loopback", {.engines = engines});
        const rdma_device rdma(at, {.address = "10.0.0.1"});
        std::vector<memory_window> windows;
        for (unsigned each = 0; each != 1000; ++each)
            windows.emplace_back(rdma, each % 2 == 0 ? window_type::type_1 : window_type::type_2);
        held_engine engine(at);
        windows.clear();
        EXPECT_TRUE(engine.let_go()) << engines;
        EXPECT_FALSE(engine.sleeps) << "it makes a change";
    }
}

TEST(RdmaWindowsEnd, FindsAnEngineAsleepThatHasNothingToDo)
{
    const port at = port::open("loopback");
    nic::soft::engines& all = software_nic(at).engines();
    EXPECT_TRUE(eventually([&] { return all.sleep(); }));
    EXPECT_TRUE(eventually([&] { return !all.sleep(); })) << "for short times";
}

} // namespace weftio::test
