// A capture that a port writes is no other port's.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sends.hpp"
#include "unit/nic/capture_files.hpp"

namespace weftio::test {
namespace {

using testing::HasSubstr;

class CaptureInUse : public testing::Test {
 protected:
    void expect_refusal(const std::string& spec, errc code, const std::string& what)
    {
        const error refused = error_of([&] { port::open(spec); });
        EXPECT_EQ(refused.code(), code);
        EXPECT_THAT(refused.what(), HasSubstr("weftio: port " + spec + ": "));
        EXPECT_THAT(refused.what(), HasSubstr(what));
    }

    scratch_folder folder;
    std::string capture = folder.write("in.pcap", pcap_file({{1, 0, frames::bytes(60)}}));
    std::uintmax_t bytes = std::filesystem::file_size(capture);
};

TEST_F(CaptureInUse, IsNotWrittenByTwoPortsByWhateverPath)
{
    const std::string out = folder / "out.pcap", symbolic = folder / "symbolic.pcap", hard = folder / "hard.pcap";
    {
        sends some("pcap:tx=" + out);
        std::filesystem::create_symlink(out, symbolic);
        std::filesystem::create_hard_link(out, hard);
        some.run(100, 10);
        for (const std::string& path : {out, symbolic, hard, folder / "../" + out.substr(out.find("weftio_test"))})
            expect_refusal("pcap:tx=" + path, errc::in_use,
                           path + " is already being written by a port of this process");
        EXPECT_EQ(std::filesystem::file_size(out), 24u + 10 * 116);
    }
    port::open("pcap:tx=" + symbolic);
}

TEST_F(CaptureInUse, IsNotWrittenOverWhatAPortReads)
{
    expect_refusal("pcap:rx=" + capture + ",tx=" + capture, errc::in_use, "writing would empty it");
    {
        const port reads = port::open("pcap:" + capture);
        const port reads_too = port::open("pcap:" + capture);
        expect_refusal("pcap:tx=" + capture, errc::in_use, "writing would empty it");
    }
    EXPECT_EQ(std::filesystem::file_size(capture), bytes);
    port::open("pcap:tx=" + capture);
}

TEST_F(CaptureInUse, IsNotReadWhileItIsWritten)
{
    const std::string out = folder / "out.pcap";
    {
        const port writes = port::open("pcap:tx=" + out);
        expect_refusal("pcap:" + out, errc::in_use,
                       "is already being written by a port of this process; close that port first");
    }
    port::open("pcap:" + out);
}

TEST_F(CaptureInUse, ThatIsAPipeIsRefusedWhileNobodyReadsIt)
{
    const std::string pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    expect_refusal("pcap:" + pipe, errc::invalid_argument, "is not a regular file");
    expect_refusal("pcap:tx=" + pipe, errc::invalid_argument, "is a pipe without a reader; start its reader first");
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    {
        sends some("pcap:tx=" + pipe);
        some.run(100, 10);
        std::vector<char> got(4096);
        EXPECT_EQ(::read(reader, got.data(), got.size()), 24 + 10 * 116);
    }
    ::close(reader);
}

} // namespace
} // namespace weftio::test
