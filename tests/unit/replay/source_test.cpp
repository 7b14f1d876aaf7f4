// Files, pipes, gzip, zstd, xz and bzip2.
#include <bzlib.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <thread>

#include "capture_bytes.hpp"
#include "scratch.hpp"

namespace weftio::replay::test {
namespace {

std::string gzipped(const std::string& plain)
{
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    std::string out(deflateBound(&stream, plain.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

std::string zstandard(const std::string& plain)
{
    std::string out(ZSTD_compressBound(plain.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), 3));
    return out;
}

std::string xz(const std::string& plain)
{
    std::string out(lzma_stream_buffer_bound(plain.size()), '\0');
    std::size_t at = 0;
    lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(plain.data()),
                            plain.size(), reinterpret_cast<std::uint8_t*>(out.data()), &at, out.size());
    out.resize(at);
    return out;
}

std::string bzip2(const std::string& plain)
{
    std::string out(plain.size() + plain.size() / 100 + 600, '\0');
    auto bytes = static_cast<unsigned>(out.size());
    BZ2_bzBuffToBuffCompress(out.data(), &bytes, const_cast<char*>(plain.data()), static_cast<unsigned>(plain.size()),
                             1, 0, 0);
    out.resize(bytes);
    return out;
}

/// Frames that do not compress well, over more than one window.
std::string big_capture(std::uint32_t frames = 2000)
{
    std::string file = pcap_header();
    std::uint32_t state = 1;
    for (std::uint32_t number = 0; number < frames; ++number) {
        std::string frame(1000, '\0');
        for (char& byte : frame)
            byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
        file += pcap_record(false, number, 0, frame);
    }
    return file;
}

class Source : public testing::Test {
 protected:
    read_capture read(const std::string& content)
    {
        auto reader = open_capture(files.write("capture", content));
        return read_all(*reader);
    }
    scratch files;
};

TEST_F(Source, ThatIsCompressedIsLookedThrough)
{
    std::string plain = big_capture();
    for (const std::string& content : {plain, gzipped(plain), zstandard(plain), xz(plain), bzip2(plain)}) {
        read_capture all = read(content);
        ASSERT_EQ(all.frames.size(), 2000u);
        EXPECT_FALSE(all.damaged);
        EXPECT_EQ(all.frames[1999].bytes, plain.substr(plain.size() - 1000));
    }
}

TEST_F(Source, OfSeveralMembersIsOneStream)
{
    std::string first = pcap_header() + pcap_record(false, 1, 0, frame_of(60)),
                second = pcap_record(false, 2, 0, frame_of(60));
    EXPECT_EQ(read(gzipped(first) + gzipped(second)).frames.size(), 2u);
    EXPECT_EQ(read(zstandard(first) + zstandard(second)).frames.size(), 2u);
    EXPECT_EQ(read(xz(first) + xz(second)).frames.size(), 2u);
    EXPECT_EQ(read(bzip2(first) + bzip2(second)).frames.size(), 2u);
}

TEST_F(Source, ThatIsCutShortOrChangedIsDamage)
{
    std::string plain = big_capture();
    for (std::string content : {gzipped(plain), zstandard(plain), xz(plain), bzip2(plain)}) {
        read_capture cut = read(content.substr(0, content.size() / 2));
        ASSERT_TRUE(cut.damaged);
        EXPECT_NE(cut.damaged->reason.find("ends too early"), std::string::npos) << cut.damaged->reason;
        EXPECT_GT(cut.frames.size(), 500u);
        for (std::size_t at = content.size() / 2; at < content.size() / 2 + 64; ++at)
            content[at] = '\x55';
        read_capture changed = read(content);
        ASSERT_TRUE(changed.damaged);
        EXPECT_LT(changed.frames.size(), 2000u);
    }
}

TEST_F(Source, OfEveryKindStartsOver)
{
    std::string plain = big_capture(100);
    for (const std::string& content : {plain, gzipped(plain), zstandard(plain), xz(plain), bzip2(plain)}) {
        auto reader = open_capture(files.write("capture", content));
        EXPECT_EQ(read_all(*reader).frames.size(), 100u);
        ASSERT_TRUE(reader->rewind());
        EXPECT_EQ(read_all(*reader).frames.size(), 100u);
    }
}

TEST_F(Source, KnowsWhichShareOfItWasRead)
{
    std::string plain = big_capture();
    std::vector<std::byte> room(200'000);
    for (const std::string& content : {plain, gzipped(plain), zstandard(plain), xz(plain), bzip2(plain)}) {
        auto source = open_source(files.write("capture", content));
        EXPECT_LT(source->share().value(), 0.5);
        while (source->read(room.data(), room.size()) > 0) {
        }
        EXPECT_EQ(source->share().value(), 1.0);
    }
}

TEST_F(Source, ThatShrinksWhileItIsReadIsDamage)
{
    std::string path = files.write("capture", big_capture());
    auto reader = open_capture(path);
    frame next;
    ASSERT_TRUE(reader->next(next));
    ASSERT_EQ(::truncate(path.c_str(), 1'000'000), 0);
    std::size_t frames = read_all(*reader).frames.size();
    EXPECT_TRUE(reader->damaged());
    EXPECT_LT(frames, 1999u);
}

TEST_F(Source, ThatGrowsWhileItIsReadIsReadToItsNewEnd)
{
    std::string path = files.write("capture", big_capture());
    auto reader = open_capture(path);
    frame next;
    ASSERT_TRUE(reader->next(next));
    std::ofstream(path, std::ios::binary | std::ios::app) << pcap_record(false, 9, 0, frame_of(60));
    EXPECT_EQ(read_all(*reader).frames.size(), 2000u);
    EXPECT_FALSE(reader->damaged());
}

TEST_F(Source, ThatIsMissingOrAFolderIsRefusedWithItsName)
{
    for (const std::string& path : {files.path("none.pcap"), files.path("")})
        try {
            open_capture(path);
            FAIL() << path;
        } catch (const open_error& error) {
            EXPECT_NE(std::string(error.what()).find(path), std::string::npos);
        }
}

TEST_F(Source, ThatIsASilentPipeIsLeftWhenAskedToStop)
{
    std::string path = files.path("pipe");
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        std::ofstream pipe(path, std::ios::binary);
        pipe << pcap_header() << pcap_record(false, 1, 0, frame_of(60)) << std::flush;
        while (!stop)
            std::this_thread::yield();
    });
    auto reader = open_capture(path, &stop);
    frame next;
    EXPECT_TRUE(reader->next(next));
    std::thread stopper([&] { stop = true; });
    EXPECT_FALSE(reader->next(next));
    stopper.join();
    writer.join();
}

} // namespace
} // namespace weftio::replay::test
