// Programs that end with ports open, in every way in which programs end.
#include <gtest/gtest.h>
#include <pcap/pcap.h>
#include <rte_dev.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/process.hpp"
#include "scene.hpp"
#include "stage.hpp"

namespace {

using namespace std::chrono_literals;
using weftio::test::ends_well, weftio::test::patience, weftio::test::play, weftio::test::scene,
    weftio::test::scene_argument, weftio::test::stage;

constexpr int times = 9; ///< some of these crashed in one run of three

// Made before, and destroyed behind, whatever the library makes when its first port opens.
std::optional<weftio::port> kept_port;
std::unique_ptr<stage> kept_stage;

const scene port_in_a_global("port_in_a_global", [] {
    kept_port = weftio::port::open(scene_argument());
    return 3;
});

const scene all_in_a_global("all_in_a_global", [] {
    kept_stage = std::make_unique<stage>(scene_argument());
    return kept_stage->run() ? 3 : 1;
});

const scene inline_in_a_global("inline_in_a_global", [] {
    kept_stage =
        std::make_unique<stage>(scene_argument(), weftio::port_options{.mode = weftio::engine_mode::inline_worker});
    return kept_stage->run() ? 3 : 1;
});

const scene static_in_a_function("static_in_a_function", [] {
    static stage kept(scene_argument());
    return kept.run() ? 3 : 1;
});

const scene released_at_exit("released_at_exit", [] {
    weftio::core::release_at_exit([]() noexcept { static_cast<void>(write(STDOUT_FILENO, "released", 8) != 8); });
    return 3;
});

const scene exit_in_main("exit_in_main", [] {
    weftio::port port = weftio::port::open(scene_argument());
    std::exit(3);
    return 1;
});

const scene exit_with_kernels("exit_with_kernels", [] {
    stage all(scene_argument());
    if (all.run())
        std::exit(3);
    return 1;
});

const scene exit_with_inline_kernels("exit_with_inline_kernels", [] {
    stage all(scene_argument(), {.mode = weftio::engine_mode::inline_worker});
    if (all.run())
        std::exit(3);
    return 1;
});

const scene exit_in_a_thread("exit_in_a_thread", [] {
    kept_stage = std::make_unique<stage>(scene_argument());
    if (!kept_stage->run())
        return 1;
    std::thread([] { std::exit(3); }).join();
    return 1;
});

const scene exit_while_others_open("exit_while_others_open", [] {
    for (int thread = 0; thread < 3; ++thread)
        std::thread([thread] {
            try {
                for (;;)
                    weftio::port::open("net_null_exit" + std::to_string(thread));
            } catch (const weftio::error&) { // the process ends
            }
        }).detach();
    weftio::port port = weftio::port::open(scene_argument());
    std::this_thread::sleep_for(20ms);
    std::exit(3);
    return 1;
});

/// The device has gone. DPDK cannot be cleaned up by one thread while another is in the middle of removing a device.
std::atomic<bool> removed{false};

const scene exit_in_the_sink("exit_in_the_sink", [] {
    kept_stage = std::make_unique<stage>("net_null_lost");
    weftio::set_log_sink([](weftio::log_level, std::string_view line) {
        if (line.find("the port is gone") == std::string_view::npos)
            return;
        while (!removed)
            std::this_thread::sleep_for(1ms);
        std::exit(3); // on the engine's thread
    });
    rte_eal_hotplug_remove("vdev", "net_null_lost");
    removed = true;
    std::this_thread::sleep_for(patience);
    return 1;
});

const scene exit_in_a_report("exit_in_a_report", [] {
    kept_stage = std::make_unique<stage>("null");
    if (!kept_stage->run())
        return 1;
    kept_stage->out = weftio::eth_txq(kept_stage->port, kept_stage->device); // the kernel ends unasked
    kept_stage->sends.watch({.period = 1ms, .on_report = [](const weftio::kernel_report&) { std::exit(3); }});
    std::this_thread::sleep_for(patience);
    return 1;
});

const scene quick_end("quick_end", [] {
    kept_stage = std::make_unique<stage>("null");
    if (kept_stage->run())
        std::quick_exit(3);
    return 1;
});

const scene ended_by_a_signal("ended_by_a_signal", [] {
    kept_stage = std::make_unique<stage>("null");
    if (kept_stage->run())
        kill(getpid(), SIGTERM);
    std::this_thread::sleep_for(patience);
    return 1;
});

const scene exit_with_a_capture("exit_with_a_capture", [] {
    stage all("pcap:tx=" + scene_argument());
    if (all.send(40))
        std::exit(3);
    return 1;
});

const scene a_capture_in_a_global("a_capture_in_a_global", [] {
    kept_stage = std::make_unique<stage>("pcap:tx=" + scene_argument());
    return kept_stage->send(40) ? 3 : 1;
});

TEST(ProcessEnd, ReleasesWhatIsLeftOnce)
{
    const weftio::test::ending end = play("released_at_exit");
    EXPECT_EQ(end.exit_status, 3) << end.text();
    EXPECT_EQ(end.printed, "released");
}

TEST(ProcessEnd, WithAPortInAGlobal)
{
    for (const char* spec : {"null", "loopback", "pcap:builtin"})
        ends_well("port_in_a_global", spec, 3, times / 3);
}

TEST(ProcessEnd, WithQueuesAndKernelsInGlobals)
{
    ends_well("all_in_a_global", "null", 3, times);
    ends_well("inline_in_a_global", "null", 3, times / 3);
    ends_well("static_in_a_function", "null", 3, times / 3);
}

TEST(ProcessEnd, ByExitInMain)
{
    ends_well("exit_in_main", "null", 3, times);
    ends_well("exit_in_main", "pcap:builtin", 3, times);
}

TEST(ProcessEnd, ByExitWhileKernelsRun)
{
    ends_well("exit_with_kernels", "null", 3, times);
    ends_well("exit_with_inline_kernels", "null", 3, times);
}

TEST(ProcessEnd, ByExitInAnotherThread)
{
    ends_well("exit_in_a_thread", "null", 3, times);
}

TEST(ProcessEnd, ByExitWhileOthersOpenPorts)
{
    ends_well("exit_while_others_open", "null", 3, times);
}

TEST(ProcessEnd, ByExitInTheLogSinkOnAnEngine)
{
    ends_well("exit_in_the_sink", "", 3, times / 3);
}

TEST(ProcessEnd, ByExitInTheReportOfAWatch)
{
    ends_well("exit_in_a_report", "", 3, times / 3);
}

TEST(ProcessEnd, WithoutDestructors)
{
    ends_well("quick_end", "", 3, times / 3);
}

TEST(ProcessEnd, BySigtermWhileKernelsRun)
{
    for (int time = 0; time < times / 3; ++time)
        EXPECT_EQ(play("ended_by_a_signal").signal, SIGTERM);
}

int frames_in(const std::string& file)
{
    char refusal[PCAP_ERRBUF_SIZE];
    pcap_t* capture = pcap_open_offline(file.c_str(), refusal);
    if (!capture)
        return -1;
    int frames = 0, result = 0;
    pcap_pkthdr* header = nullptr;
    const u_char* bytes = nullptr;
    while ((result = pcap_next_ex(capture, &header, &bytes)) == 1)
        ++frames;
    pcap_close(capture);
    return result == PCAP_ERROR_BREAK ? frames : -1; // whole
}

TEST(ProcessEnd, LeavesWholeCaptureFiles)
{
    for (const char* name : {"exit_with_a_capture", "a_capture_in_a_global"}) {
        const std::string file = testing::TempDir() + "weftio_" + std::to_string(getpid()) + ".pcap";
        EXPECT_TRUE(ends_well(name, file, 3, 1));
        EXPECT_EQ(frames_in(file), 40) << name;
        std::remove(file.c_str());
    }
}

} // namespace
