// Captures that nobody here wrote, from Debian packages, judged by the tools people trust.
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <sstream>

#include "capture_bytes.hpp"
#include "report/check.hpp"

namespace weftio::replay::test {
namespace {

std::vector<std::string> package_captures()
{
    constexpr std::array folders{"/usr/share/gocode/src/github.com/google/gopacket/pcap",
                                 "/usr/share/gocode/src/github.com/google/gopacket/pcapgo/tests/be",
                                 "/usr/share/gocode/src/github.com/google/gopacket/pcapgo/tests/le",
                                 "/usr/share/sip-tester",
                                 "/usr/share/doc/python3-dpkt/examples/data",
                                 "/usr/share/doc/pcapfix/examples"};
    std::vector<std::string> files;
    for (const char* folder : folders)
        if (std::filesystem::is_directory(folder))
            for (const auto& entry : std::filesystem::directory_iterator(folder))
                if (entry.path().extension() == ".pcap" || entry.path().extension() == ".pcapng")
                    files.push_back(entry.path().string());
    return files;
}

std::string output_of(const std::string& command)
{
    std::string text;
    std::array<char, 4096> piece;
    std::FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
    for (std::size_t count; (count = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;)
        text.append(piece.data(), count);
    ::pclose(pipe);
    return text;
}

class PackageCaptures : public testing::Test {
 protected:
    void SetUp() override
    {
        files = package_captures();
        if (files.size() < 70)
            GTEST_SKIP()
                << "captures of golang-github-google-gopacket-dev, sip-tester, python3-dpkt and pcapfix were not "
                   "read: not installed";
    }
    std::vector<std::string> files;
};

struct capinfos_verdict {
    std::uint64_t frames = 0;
    std::optional<std::uint64_t> bytes;
    bool good = false;
};

/// Its row has name, frames, bytes; of some damaged files there is none, only "after reading N packets".
capinfos_verdict by_capinfos(const std::string& file)
{
    std::string text = output_of("(capinfos -M -T -r -c -d " + file + " 2>&1 && echo all good)");
    std::smatch match;
    capinfos_verdict made;
    made.good = text.find("all good") != std::string::npos;
    if (std::regex_search(text, match, std::regex(file + "\t(\\d+)\t(\\d+)"))) {
        made.frames = std::stoull(match[1]);
        made.bytes = std::stoull(match[2]);
    } else if (std::regex_search(text, match, std::regex("after reading (\\d+) packets"))) {
        made.frames = std::stoull(match[1]);
    }
    return made;
}

TEST_F(PackageCaptures, HaveTheCountsAndVerdictsOfCapinfos)
{
    if (output_of("capinfos --version").empty())
        GTEST_SKIP() << "capinfos (package wireshark-common) was not asked: not installed";
    for (const std::string& file : files) {
        verdict mine = check_file(file);
        capinfos_verdict theirs = by_capinfos(file);
        EXPECT_EQ(mine.frames, theirs.frames) << file;
        EXPECT_EQ(mine.wire_bytes, theirs.bytes.value_or(mine.wire_bytes)) << file;
        EXPECT_EQ(!mine.damaged, theirs.good) << file << (mine.damaged ? mine.damaged->reason : "");
    }
}

/// Compares frame by frame; returns false when libpcap cannot read such a file, which has several link types or snap
/// lengths.
bool same_by_libpcap(const std::string& file)
{
    char why[PCAP_ERRBUF_SIZE];
    auto reader = open_capture(file);
    pcap_t* capture = pcap_open_offline_with_tstamp_precision(file.c_str(), PCAP_TSTAMP_PRECISION_NANO, why);
    if (!capture)
        return false;
    pcap_pkthdr* header;
    const u_char* data;
    frame mine;
    while (pcap_next_ex(capture, &header, &data) == 1) {
        EXPECT_TRUE(reader->next(mine)) << file;
        EXPECT_EQ(mine.time_ns, header->ts.tv_sec * 1'000'000'000 + header->ts.tv_usec) << file;
        EXPECT_EQ(mine.original_bytes, header->len) << file;
        EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(mine.bytes.data()), mine.bytes.size()),
                  std::string_view(reinterpret_cast<const char*>(data), header->caplen))
            << file;
    }
    bool whole = std::string_view(pcap_geterr(capture)).find("different from") == std::string_view::npos;
    pcap_close(capture);
    if (whole) {
        EXPECT_FALSE(reader->next(mine)) << file;
    }
    return whole;
}

TEST_F(PackageCaptures, HaveTheFramesOfLibpcap)
{
    int compared = 0;
    for (const std::string& file : files)
        compared += same_by_libpcap(file);
    EXPECT_GE(compared, 45);
}

/// "seconds.nanoseconds" as tshark prints it; simple packets have none.
std::string epoch_text(const frame& of)
{
    if (!of.has_time)
        return "";
    char text[64];
    std::snprintf(text, sizeof text, "%lld.%09lld", static_cast<long long>(of.time_ns / 1'000'000'000),
                  static_cast<long long>(of.time_ns % 1'000'000'000));
    return text;
}

TEST_F(PackageCaptures, OfSeveralInterfacesHaveTheTimesAndLengthsOfTshark)
{
    if (output_of("tshark --version").empty())
        GTEST_SKIP() << "tshark was not asked: not installed";
    for (const std::string& file : files) { // custom blocks, which tshark lists as well, have no encapsulation
        if (file.find("/le/test10") == std::string::npos && file.find("/be/test20") == std::string::npos)
            continue;
        std::istringstream rows(output_of(
            "tshark -r " + file + " -Y frame.encap_type -T fields -e frame.time_epoch -e frame.len -e frame.cap_len"));
        auto reader = open_capture(file);
        frame mine;
        for (std::string row; std::getline(rows, row);) {
            ASSERT_TRUE(reader->next(mine)) << file;
            EXPECT_EQ(row, epoch_text(mine) + "\t" + std::to_string(mine.original_bytes) + "\t" +
                               std::to_string(mine.captured_bytes))
                << file;
        }
        EXPECT_FALSE(reader->next(mine)) << file;
    }
}

} // namespace
} // namespace weftio::replay::test
