// Frames of ports in a pcapng file.
#include "wire_end.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <thread>

namespace weftio::test {

namespace {

using testing::HasSubstr;

struct dumped {
    std::uint32_t interface = 0, flags = 0;
    std::uint64_t time_ns = 0;
    frame bytes;
};

struct dump_file {
    std::size_t sections = 0;
    std::vector<std::string> interfaces;
    std::vector<dumped> frames;
    bool whole = true; ///< ends with a whole block

    /// The frames that an interface has sent or received.
    std::vector<frame> of(std::uint32_t interface, net::frame_direction direction) const
    {
        std::vector<frame> some;
        for (const dumped& each : frames)
            if (each.interface == interface && each.flags == static_cast<std::uint32_t>(direction))
                some.push_back(each.bytes);
        return some;
    }
};

std::uint32_t word_at(const frame& file, std::size_t at)
{
    std::uint32_t word = 0;
    std::memcpy(&word, file.data() + at, sizeof word);
    return word;
}

dump_file read_dump(const std::string& path)
{
    std::ifstream stream(path, std::ios::binary);
    const frame file{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    dump_file read;
    std::size_t at = 0;
    for (std::uint32_t length = 0; at + 12 <= file.size(); at += length) {
        length = word_at(file, at + 4);
        if (length < 12 || length % 4 != 0 || length > file.size() - at || word_at(file, at + length - 4) != length)
            break;
        const auto from = [&](std::size_t offset) { return file.begin() + static_cast<std::ptrdiff_t>(at + offset); };
        switch (word_at(file, at)) {
            case net::pcapng_builder::section_header: ++read.sections; break;
            case net::pcapng_builder::interface_description:
                read.interfaces.emplace_back(from(20), from(20 + word_at(file, at + 16) / 65536));
                break;
            case 6: {
                const std::uint32_t bytes = word_at(file, at + 20);
                EXPECT_EQ(word_at(file, at + 24), bytes) << "it is whole";
                read.frames.push_back({.interface = word_at(file, at + 8),
                                       .flags = word_at(file, at + 28 + (bytes + 3) / 4 * 4 + 4),
                                       .time_ns = std::uint64_t{word_at(file, at + 12)} << 32 | word_at(file, at + 16),
                                       .bytes = frame(from(28), from(28 + bytes))});
                break;
            }
            default: ADD_FAILURE() << "a block of type " << word_at(file, at);
        }
    }
    read.whole = at == file.size();
    return read;
}

class Dump : public Wire {
 protected:
    std::string file() const { return folder() + "/dump.pcapng"; }
    static std::uint64_t now_ns()
    {
        return static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
                .count());
    }
};

TEST_F(Dump, HasAllFramesWholeWithTimesAndDirections)
{
    constexpr auto sent = net::frame_direction::sent, received = net::frame_direction::received;
    constexpr std::uint64_t count = 200, second = 1'000'000'000;
    const std::uint64_t begin = now_ns();
    const wired_end one({.dump = file()}), two;
    std::vector<frame> there, back;
    for (std::uint64_t number = 0; number != count; ++number) {
        there.push_back(numbered(two.at.mac(), number, 60 + number * 4154 / (count - 1)));
        back.push_back(numbered(one.at.mac(), number, 60 + number));
        one.send(there.back());
        ASSERT_EQ(two.receive(), there.back());
        two.send(back.back());
        ASSERT_EQ(one.receive(), back.back());
        if (number % 50 == 0) {
            EXPECT_EQ(read_dump(file()).frames.size(), 2 * number + 2) << "while it grows";
        }
    }
    const dump_file read = read_dump(file());
    EXPECT_TRUE(read.whole);
    EXPECT_EQ(read.sections, 1u);
    ASSERT_EQ(read.interfaces.size(), 1u);
    EXPECT_EQ(read.interfaces[0], fmt::format("{} of process {}", wired_end::spec(), ::getpid()));
    EXPECT_EQ(read.of(0, sent), there);
    EXPECT_EQ(read.of(0, received), back);
    for (std::size_t at = 0; at != read.frames.size(); ++at) {
        EXPECT_GE(read.frames[at].time_ns, at == 0 ? begin - second : read.frames[at - 1].time_ns);
        EXPECT_LE(read.frames[at].time_ns, now_ns() + second);
    }
}

TEST_F(Dump, IsSharedByPortsOfSeveralProcesses)
{
    const wired_end one({.dump = file()});
    {
        const wired_end two({.dump = file()});
        one.send(numbered(two.at.mac(), 1, 100));
        two.receive();
        two.send(numbered(one.at.mac(), 2, 100));
        one.receive();
    }
    const wired_end three({.dump = file()});
    three.send(numbered(one.at.mac(), 3, 100));
    one.receive();
    const dump_file read = read_dump(file());
    EXPECT_TRUE(read.whole);
    EXPECT_EQ(read.sections, 1u);
    EXPECT_EQ(read.interfaces.size(), 3u);
    std::vector<std::uint32_t> by_interface(3);
    for (const dumped& each : read.frames)
        ++by_interface.at(each.interface);
    EXPECT_EQ(by_interface, (std::vector<std::uint32_t>{3, 2, 1}));
}

TEST_F(Dump, EmptiesAFileThatNobodyWrites)
{
    std::ofstream(file()) << std::string(100'000, 'x');
    for (unsigned time = 0; time != 2; ++time) {
        const wired_end one({.dump = file()});
        one.send(numbered(one.at.mac(), 1, 60));
        one.receive();
        const dump_file read = read_dump(file());
        EXPECT_TRUE(read.whole);
        EXPECT_EQ(read.interfaces.size(), 1u);
        EXPECT_EQ(read.frames.size(), 2u);
    }
}

TEST_F(Dump, HasPacketsBetweenQueuePairsOfThePort)
{
    const wired_end one({.dump = file()});
    rdma_end here(one, 1), there(one, 2);
    here.queue.connect(there.queue.address());
    there.queue.connect(here.queue.address());
    here.write_all(there);
    const dump_file read = read_dump(file());
    EXPECT_TRUE(read.whole);
    const auto sent = read.of(0, net::frame_direction::sent);
    EXPECT_GT(sent.size(), 256u) << "1 MiB in packets of 4 KiB, and acknowledgments";
    EXPECT_EQ(sent, read.of(0, net::frame_direction::received));
}

/// What a command prints; nothing if it fails.
std::string output_of(const std::string& command)
{
    std::string printed(4096, '\0');
    std::FILE* const pipe = ::popen(("{ " + command + "; } 2>/dev/null").c_str(), "r");
    printed.resize(std::fread(printed.data(), 1, printed.size(), pipe));
    return ::pclose(pipe) == 0 ? printed : "";
}

TEST_F(Dump, IsReadByTsharkWhileItGrows)
{
    if (output_of("tshark --version").empty())
        GTEST_SKIP() << "missed: tshark reads a file that grows; install tshark";
    const wired_end one({.dump = file()}), two({.dump = file()});
    rdma_end here(one, 1), there(two, 2);
    here.queue.connect(there.queue.address());
    there.queue.connect(here.queue.address());
    here.write_all(there);
    const std::string asked = "tshark -r " + file() +
                              " -T fields -e frame.interface_id -e frame.packet_flags_direction "
                              "-e infiniband.bth.destqp -Y 'infiniband.bth.opcode == 8' | sort -u";
    EXPECT_EQ(output_of(asked), "0\t0x00000002\t0x004010\n1\t0x00000001\t0x004010\n") << "the last packet of a WRITE";
    EXPECT_EQ(output_of("tshark -r " + file() + " -Y _ws.malformed"), "");
}

TEST_F(Dump, EndsWithAWholeFrameWhenItCannotGrow)
{
    if (!mount("100k"))
        GTEST_SKIP() << "missed: a full file system; needs root to mount a small one";
    const wired_end one({.dump = file()});
    for (std::uint64_t number = 0; number != 100; ++number) {
        one.send(numbered(one.at.mac(), number, 4000));
        ASSERT_EQ(one.receive(), numbered(one.at.mac(), number, 4000)) << "frames go on";
    }
    const dump_file read = read_dump(file());
    EXPECT_TRUE(read.whole);
    EXPECT_EQ(read.frames.size(), 25u);
}

TEST_F(Dump, RefusesWhatCannotBeWritten)
{
    const auto refused = [&](const std::string& path, errc code, const std::string& words) {
        try {
            wired_end::open({.dump = path});
            ADD_FAILURE() << path;
        } catch (const error& refusal) {
            EXPECT_EQ(refusal.code(), code) << refusal.what();
            EXPECT_THAT(refusal.what(), HasSubstr(words));
        }
    };
    refused(folder(), errc::invalid_argument, "not a file; name a file");
    refused(folder() + "/no/file", errc::not_found, "cannot write " + folder() + "/no/file: No such file");
    ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
    refused(file(), errc::invalid_argument, "a pipe without a reader; start its reader first");
    EXPECT_FALSE(std::filesystem::exists(wires::path_of("", wired_end::spec().substr(5))));
}

} // namespace

} // namespace weftio::test
