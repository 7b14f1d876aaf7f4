// Files that a command line would both read and write.
#include <gtest/gtest.h>

#include <filesystem>

#include "file_clash.hpp"
#include "scratch.hpp"

namespace weftio::replay::test {
namespace {

class FileClash : public testing::Test {
 protected:
    FileClash()
    {
        std::filesystem::create_symlink(capture, files.path("link"));
        std::filesystem::create_hard_link(capture, files.path("hard"));
        std::filesystem::create_symlink("new", files.path("dangling"));
    }

    std::string clash(std::vector<std::string> words) const
    {
        std::vector<const char*> plain{"weftio-replay"};
        for (const std::string& word : words)
            plain.push_back(word.c_str());
        command made = parse_command_line(static_cast<int>(plain.size()), plain.data());
        EXPECT_NE(made.what, command::action::say) << made.text;
        return file_clash(made);
    }

    scratch files;
    const std::string capture = files.write("a.pcap", "bytes");
};

TEST_F(FileClash, ACaptureIsNotWrittenUnderAnyOfItsNames)
{
    for (const char* name : {"a.pcap", "link", "hard", "./a.pcap"}) {
        const std::string path = files.path(name);
        EXPECT_NE(clash({capture, "pcap:tx=" + path}), "") << path;
        EXPECT_NE(clash({capture, "net_pcap0,tx_pcap=" + path}), "") << path;
        EXPECT_NE(clash({"--json", path, capture, "null"}), "") << path;
        EXPECT_NE(clash({"--plot", path, capture, "null"}), "") << path;
        EXPECT_NE(clash({"--check", "--json", path, capture}), "") << path;
        EXPECT_NE(clash({"--split", "client", "--port2", "pcap:tx=" + path, capture, "null"}), "") << path;
        EXPECT_NE(clash({"--json", capture, "none", "pcap:rx=" + path + ",tx=" + files.path("new")}), "") << path;
    }
}

TEST_F(FileClash, TheErrorNamesTheWordAndTheFile)
{
    const std::string text = clash({capture, "pcap:tx=" + files.path("link")});
    EXPECT_EQ(text.find("weftio-replay: port pcap:tx=" + files.path("link") + ": would overwrite " + capture), 0u)
        << text;
}

TEST_F(FileClash, TwoResultsDoNotShareAFile)
{
    const std::string fresh = files.path("new");
    EXPECT_NE(clash({"--json", fresh, "--plot", fresh, capture, "null"}), "");
    EXPECT_NE(clash({"--json", fresh, capture, "pcap:tx=" + files.path("./new")}), "");
    EXPECT_NE(clash({"--json", files.path("dangling"), capture, "pcap:tx=" + fresh}), "");
    EXPECT_NE(clash({"--json", "-", "--plot", "-", capture, "null"}), "");
    EXPECT_NE(clash({"--split", "client", "--port2", "pcap:tx=" + fresh, capture, "pcap:tx=" + fresh}), "");
}

TEST_F(FileClash, OtherFilesDevicesAndPipesAreLeftAlone)
{
    EXPECT_EQ(clash({"--json", files.path("j"), "--plot", files.path("p"), capture, "pcap:tx=" + files.path("new")}),
              "");
    EXPECT_EQ(clash({"--json", "/dev/null", "--plot", "/dev/null", capture, "pcap:tx=/dev/null"}), "");
    EXPECT_EQ(clash({capture, capture, "null"}), "");
    EXPECT_EQ(clash({capture, "pcap:" + capture}), "");
    EXPECT_EQ(clash({"--json", files.path("none/j"), "--plot", files.path("none/j"), capture, "null"}), "");
}

} // namespace
} // namespace weftio::replay::test
