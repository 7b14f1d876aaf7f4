// What counts as sent into a capture file is in it.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include "sends.hpp"
#include "unit/nic/capture_files.hpp"

namespace weftio::test {
namespace {

volatile std::sig_atomic_t handled = 0;

/// Files of this process can grow to `bytes` for as long as this lives. The signal that Linux raises at a file that
/// would grow further has a handler, as an application could have one.
class full_disk {
 public:
    explicit full_disk(rlim_t bytes)
    {
        handled = 0;
        getrlimit(RLIMIT_FSIZE, &before_);
        rlimit wanted = before_;
        wanted.rlim_cur = bytes;
        setrlimit(RLIMIT_FSIZE, &wanted);
    }
    full_disk(const full_disk&) = delete;
    full_disk& operator=(const full_disk&) = delete;
    ~full_disk()
    {
        setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

 private:
    rlimit before_{};
    void (*handler_)(int) = std::signal(SIGXFSZ, [](int) { handled = handled + 1; });
};

/// The whole frames of a capture as libpcap reads it; -1 for one that is damaged.
int frames_in(const std::string& path)
{
    char why[PCAP_ERRBUF_SIZE];
    pcap_t* file = pcap_open_offline(path.c_str(), why);
    EXPECT_NE(file, nullptr) << why;
    int frames = 0, result = 0;
    pcap_pkthdr* head = nullptr;
    const u_char* bytes = nullptr;
    while (file && (result = pcap_next_ex(file, &head, &bytes)) == 1)
        ++frames;
    if (file)
        pcap_close(file);
    return result == PCAP_ERROR_BREAK ? frames : -1;
}

class CaptureFile : public testing::Test {
 protected:
    scratch_folder folder;
};

TEST_F(CaptureFile, HoldsEveryFrameThatCountsAsSent)
{
    const std::string path = folder / "sent.pcap";
    sends some("pcap:tx=" + path);
    some.run(100, 1000);
    EXPECT_EQ(some.queue.counters().sent, 1000u);
    EXPECT_EQ(frames_in(path), 1000);
    EXPECT_EQ(some.port.driver(), "net_pcap");
}

TEST_F(CaptureFile, BeyondTheLimitOfAFilesSizeFailsAndRaisesNoSignal)
{
    const std::string path = folder / "none.pcap";
    {
        full_disk disk(10);
        const error refused = error_of([&] { port::open("pcap:tx=" + path); });
        EXPECT_EQ(refused.code(), errc::device_error);
        EXPECT_EQ(refused.what(), "weftio: port pcap:tx=" + path + ": cannot write " + path + ": File too large");
    }
    EXPECT_EQ(handled, 0);
    sends some("pcap:tx=" + path, {.mode = engine_mode::inline_worker});
    {
        full_disk disk(10'000);
        some.run(100, 1000);
        some.port.turn();
    }
    EXPECT_EQ(handled, 0);
    EXPECT_NE(some.said.find("File too large"), std::string::npos) << some.said;
}

TEST_F(CaptureFile, OnAFullDiskEndsWithTheLastFrameThatCountsAsSent)
{
    const std::string path = folder / "full.pcap";
    sends some("pcap:tx=" + path);
    {
        full_disk disk(10'000);
        some.run(100, 1000);
    }
    EXPECT_EQ(handled, 0);
    EXPECT_EQ(some.queue.counters().sent, (10'000u - 24) / 116);
    EXPECT_EQ(some.queue.counters().failed, 1u);
    EXPECT_EQ(frames_in(path), static_cast<int>(some.queue.counters().sent));
    EXPECT_NE(some.said.find("at position 86 failed"), std::string::npos) << some.said;
    EXPECT_NE(some.said.find("File too large"), std::string::npos) << some.said;
    EXPECT_NE(some.said.find(path), std::string::npos) << some.said;
}

TEST_F(CaptureFile, ThatTakesNothingIsRefusedWhenItIsOpened)
{
    const error refused = error_of([] { port::open("pcap:tx=/dev/full"); });
    EXPECT_EQ(refused.code(), errc::device_error);
    EXPECT_STREQ(refused.what(), "weftio: port pcap:tx=/dev/full: cannot write /dev/full: No space left on device");
}

TEST_F(CaptureFile, IsReadAndWrittenByOnePort)
{
    const std::string in = folder.write("in.pcap", pcap_file({{1, 0, frames::bytes(60)}})), out = folder / "out.pcap";
    sends some("pcap:rx=" + in + ",tx=" + out);
    eth_rxq arrives(some.port, some.device, {.packets = 64});
    flow all(some.port, {}, flow_action::to(arrives));
    some.run(64, 10);
    EXPECT_TRUE(eventually([&] { return arrives.counters().delivered == 1; }));
    EXPECT_EQ(frames_in(out), 10);
}

TEST_F(CaptureFile, ThatIsOnlyReadTakesNoSendQueue)
{
    const std::string path = folder.write("in.pcap", pcap_file({{1, 0, frames::bytes(60)}}));
    for (const std::string& spec : {"pcap:" + path, "pcap:rx=" + path, "net_pcap_only_read,rx_pcap=" + path}) {
        port from = port::open(spec);
        const error refused = error_of([&] { eth_txq(from, device::open("cpu")); });
        EXPECT_EQ(refused.code(), errc::not_supported);
        EXPECT_NE(std::string(refused.what()).find(spec + " reads a capture and cannot send"), std::string::npos);
    }
}

} // namespace
} // namespace weftio::test
