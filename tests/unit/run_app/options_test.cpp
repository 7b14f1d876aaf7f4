#include "options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace weftio::test {

namespace {

using run::command;
using run::parse_command_line;
using testing::ElementsAre;
using testing::HasSubstr;

command parse(std::vector<const char*> arguments)
{
    arguments.insert(arguments.begin(), "weftio-run");
    return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

TEST(RunOptions, AreBeforeTheProgram)
{
    const command wanted = parse({"--wire", "lab", "--devices=2", "--address", "10.1.0.1", "ib_write_bw", "-d",
                                  "mlx5_0", "--wire", "its own", "--"});
    ASSERT_EQ(command::action::start, wanted.what) << wanted.text;
    EXPECT_EQ("lab", wanted.wire);
    EXPECT_EQ("2", wanted.devices);
    EXPECT_EQ("10.1.0.1", wanted.address);
    EXPECT_EQ("", wanted.port);
    EXPECT_THAT(wanted.program, ElementsAre("ib_write_bw", "-d", "mlx5_0", "--wire", "its own", "--"));
}

TEST(RunOptions, EndAtTwoDashes)
{
    EXPECT_THAT(parse({"--port", "iface:v0", "--", "--odd", "--help"}).program, ElementsAre("--odd", "--help"));
    EXPECT_THAT(parse({"--", "a"}).program, ElementsAre("a"));
    EXPECT_THAT(parse({"a", "--version"}).program, ElementsAre("a", "--version"));
}

TEST(RunOptions, MakeTheDumpAbsolute)
{
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(std::filesystem::temp_directory_path());
    const std::string wanted = (std::filesystem::current_path() / "out.pcapng").string();
    EXPECT_EQ(wanted, parse({"--dump", "out.pcapng", "a"}).dump);
    std::filesystem::current_path(before);
}

TEST(RunOptions, SayHelpAndVersion)
{
    EXPECT_EQ(run::help_text(), parse({"--help"}).text);
    EXPECT_EQ(0, parse({"-h"}).exit_code);
    EXPECT_THAT(parse({"-V"}).text, HasSubstr("weftio-run 0."));
}

const std::string long_path = "/tmp/" + std::string(300, 'x');
const char* const long_name = long_path.c_str();

struct wrong_line {
    std::vector<const char*> arguments;
    const char* words;
};
const wrong_line wrong_lines[] = {
    {{}, "name the program to start"},
    {{"--"}, "name the program to start"},
    {{"--wire", "lab"}, "name the program to start"},
    {{"--wire"}, "--wire: has no value; write it as --wire lab"},
    {{"--wire", "--", "a"}, "--wire: has no value"},
    {{"--wire", "--devices", "2", "a"}, "--wire: has no value"},
    {{"--wire=lab", "--wire", "lab", "a"}, "--wire: given twice; give it once"},
    {{"--wrie", "lab", "a"}, "--wrie: no such option"},
    {{"--wrie=lab", "a"}, "--wrie: no such option"},
    {{"-x", "a"}, "-x: no such option"},
    {{"--help=all"}, "--help: takes no value"},
    {{"--wire", "a/b", "a"}, "--wire a/b: write 1 to 64"},
    {{"--wire=", "a"}, "--wire: write 1 to 64"},
    {{"--wire", "", "a"}, "--wire: write 1 to 64"},
    {{"--wire", "12345678901234567890123456789012345678901234567890123456789012345", "a"}, "1 to 64"},
    {{"--wire", "a", "--port", "iface:v0", "a"}, "--wire and --port: give only one of them"},
    {{"--port", "", "a"}, "--port: not a port"},
    {{"--address", "10.0.0", "a"}, "--address 10.0.0: not an address"},
    {{"--address", "10.0.0.1/24", "a"}, "--address 10.0.0.1/24: not an address"},
    {{"--address", "127.0.0.1", "a"}, "--address 127.0.0.1: not a unicast address of one host"},
    {{"--address", "0.0.0.0", "a"}, "--address 0.0.0.0: not a unicast address of one host"},
    {{"--address", "224.0.0.1", "a"}, "--address 224.0.0.1: not a unicast address"},
    {{"--address", "255.255.255.255", "a"}, "--address 255.255.255.255: not a unicast address"},
    {{"--address", "::", "a"}, "--address ::: not a unicast address"},
    {{"--address", "::1", "a"}, "--address ::1: not a unicast address"},
    {{"--address", "ff02::1", "a"}, "--address ff02::1: not a unicast address"},
    {{"--address", "::ffff:127.0.0.1", "a"}, "--address ::ffff:127.0.0.1: not a unicast address"},
    {{"--devices", "0", "a"}, "--devices 0: not a number from 1 to 8"},
    {{"--devices", "9", "a"}, "--devices 9: not a number from 1 to 8"},
    {{"--devices", "-1", "a"}, "--devices -1: not a number from 1 to 8"},
    {{"--devices", "2x", "a"}, "--devices 2x: not a number from 1 to 8"},
    {{"--devices", "", "a"}, "--devices: not a number from 1 to 8"},
    {{"--dump", "", "a"}, "--dump: not a file"},
    {{"--loss", "2", "a"}, "--loss 2: not a share from 0 to 1"},
    {{"--loss", "1e-400", "a"}, "--loss 1e-400: not a share from 0 to 1"},
    {{"--loss", "+0.1", "a"}, "--loss +0.1: not a share from 0 to 1"},
    {{"--loss", " 0.1", "a"}, "--loss  0.1: not a share from 0 to 1"},
    {{"--loss", "0x1p-3", "a"}, "--loss 0x1p-3: not a share from 0 to 1"},
    {{"--loss", "nan", "a"}, "--loss nan: not a share from 0 to 1"},
    {{"--loss", "", "a"}, "--loss: not a share from 0 to 1"},
    {{"--loss", "0.1,18446744073709551616", "a"},
     "--loss 0.1,18446744073709551616: the seed is not a number from 0 to 18446744073709551615"},
    {{"--loss", "0.1,-1", "a"}, "--loss 0.1,-1: the seed is not a number"},
    {{"--loss", "0.1, 1", "a"}, "--loss 0.1, 1: the seed is not a number"},
    {{"--loss", "0.1,", "a"}, "--loss 0.1,: the seed is not a number"},
    {{"--loss", "0.1,7,seed=8", "a"}, "--loss 0.1,7,seed=8: the seed is not a number"},
    {{"--loss", "0.1", "--port", "iface:v0", "a"}, "--loss and --port: only a wire"},
    {{"--stale", "maybe", "a"}, "--stale maybe: is none of report, fail and off"},
    {{"--stale", "", "a"}, "--stale: is none of report, fail and off"},
    {{"--show", "0"}, "--show 0: not a process ID"},
    {{"--show", "7", "a"}, "--show and a program: give only one of them"},
    {{"--dump", "/tmp", "a"}, "--dump /tmp: not a file"},
    {{"--dump", "/dev/null/a", "a"}, "--dump /dev/null/a: Not a directory"},
    {{"--dump", long_name, "a"}, ": File name too long"},
    {{"--dump", "/weftio-nowhere/a.pcapng", "a"}, "--dump /weftio-nowhere/a.pcapng: No such file or directory"},
};

TEST(RunOptions, ThatAreWrongAreRefused)
{
    for (const wrong_line& line : wrong_lines) {
        const command wanted = parse(line.arguments);
        EXPECT_EQ(command::action::say, wanted.what) << line.words;
        EXPECT_EQ(run::own_failure, wanted.exit_code);
        EXPECT_THAT(wanted.text, testing::AllOf(testing::StartsWith("weftio-run: "), HasSubstr(line.words),
                                                testing::EndsWith("Run with --help for usage.\n")));
    }
}

TEST(RunOptions, TakeAddressesOfBothKinds)
{
    EXPECT_EQ("fd00::1", parse({"--address", "fd00::1", "a"}).address);
    EXPECT_EQ("192.168.0.7", parse({"--address", "192.168.0.7", "a"}).address);
}

TEST(RunOptions, TakeLosses)
{
    for (const char* loss : {"0", "1", "0.01", ".5", "1e-5", "5e-1", "0.1,0", "0.1,007", "0.1,18446744073709551615"})
        EXPECT_EQ(loss, parse({"--loss", loss, "a"}).loss);
}

TEST(RunOptions, RefuseADumpByALinkToNothing)
{
    const std::string link = std::filesystem::temp_directory_path() / ("weftio-link-" + std::to_string(::getpid()));
    std::filesystem::create_symlink("/weftio-nowhere/dump", link);
    EXPECT_THAT(parse({"--dump", link.c_str(), "a"}).text, HasSubstr(link + ": No such file or directory"));
    std::filesystem::remove(link);
}

TEST(RunHelp, FitsAScreen)
{
    EXPECT_LE(std::ranges::count(run::help_text(), '\n'), 24);
}

} // namespace
} // namespace weftio::test
