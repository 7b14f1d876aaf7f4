// A log sink that throws, called from where no exception may pass: C functions of DPDK and engine threads.
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/log.hpp"
#include "weftio/weftio.hpp"

namespace {

class ThrowingLogSink : public testing::Test {
 protected:
    ~ThrowingLogSink() override { weftio::set_log_sink({}); }

    unsigned calls = 0;
};

TEST_F(ThrowingLogSink, LosesTheLineAndNothingElse)
{
    weftio::set_log_sink([this](weftio::log_level, std::string_view) {
        ++calls;
        throw std::runtime_error("no room for a line");
    });
    EXPECT_NO_THROW(weftio::core::log(weftio::log_level::info, "first"));
    EXPECT_NO_THROW(weftio::core::log(weftio::log_level::info, "second"));
    EXPECT_EQ(calls, 2u) << "a sink that throws is called again";
    std::vector<std::string> lines;
    weftio::set_log_sink([&](weftio::log_level, std::string_view line) { lines.emplace_back(line); });
    weftio::core::log(weftio::log_level::info, "third");
    EXPECT_EQ(lines, std::vector<std::string>{"third"});
}

TEST_F(ThrowingLogSink, IsNoHindranceToDpdk)
{
    weftio::set_log_sink([this](weftio::log_level, std::string_view) {
        ++calls;
        throw std::runtime_error("no room for a line");
    });
    const weftio::port opened =
        weftio::port::open("loopback"); // DPDK logs, in a process that has not opened one before
    EXPECT_EQ(opened.driver(), "net_ring");
}

} // namespace
