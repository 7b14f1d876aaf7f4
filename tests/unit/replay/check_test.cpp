// What --check says of files.
#include <gtest/gtest.h>

#include "capture_bytes.hpp"
#include "report/check.hpp"
#include "scratch.hpp"

namespace weftio::replay::test {
namespace {

class Check : public testing::Test {
 protected:
    verdict of(const std::string& content) { return check_file(files.write("a", content)); }
    scratch files;
};

TEST_F(Check, OfAMissingFileIsAVerdictLikeAnother)
{
    verdict missing = check_file(files.path("none")), good = of(pcap_header()), torn = of(pcap_header() + "torn");
    EXPECT_NE(to_text(missing).find("No such file or directory"), std::string::npos) << to_text(missing);
    EXPECT_EQ(result_of({good}), outcome::as_planned);
    EXPECT_EQ(result_of({good, torn}), outcome::damaged);
    EXPECT_EQ(result_of({missing, torn, good}), outcome::usage);
    std::string json = to_json({missing, torn, good});
    for (const char* wanted : {"\"exit_code\": 1", "\"unreadable\"", "\"damaged\"", "\"good\""})
        EXPECT_NE(json.find(wanted), std::string::npos) << wanted << " in\n" << json;
}

TEST_F(Check, ShowsControlCharactersOfNames)
{
    for (const verdict& seen : {check_file(files.path("a\n\x1b")), check_file(files.write("b\n\x1b", pcap_header()))}) {
        EXPECT_EQ(to_text(seen).find_first_of("\n\x1b"), std::string::npos);
        EXPECT_NE(to_text(seen).find("\\n\\x1b"), std::string::npos) << to_text(seen);
    }
}

TEST_F(Check, SaysWhichTimesSixtyFourBitsDoNotHold)
{
    verdict late = of(section() + interface_block(false, tsresol(false, 0)) + packet(false, 0, 1, frame_of(60)) +
                      packet(false, 0, 9'300'000'000, frame_of(60)));
    EXPECT_EQ(late.clamped, 1u);
    EXPECT_NE(to_text(late).find("1 with a time before 1677 or after 2262"), std::string::npos) << to_text(late);
    EXPECT_NE(to_json({late}).find("\"times_clamped\": 1"), std::string::npos);
    EXPECT_EQ(of(section() + interface_block() + packet(false, 0, 1, frame_of(60))).clamped, 0u);
}

TEST_F(Check, SaysWhichFramesEndWithAnFcs)
{
    constexpr std::uint32_t on_wire = 104;
    verdict seen =
        of(pcap_header(false, microseconds, 0x24000001) + pcap_record(false, 1, 0, frame_of(1518)) +
           pcap_record(false, 2, 0, frame_of(101), on_wire) + pcap_record(false, 2, 0, frame_of(50), on_wire));
    EXPECT_NE(to_text(seen).find("3 with a frame check sequence (FCS)"), std::string::npos) << to_text(seen);
    EXPECT_NE(to_json({seen}).find("\"with_fcs\": 3"), std::string::npos) << to_json({seen});
    EXPECT_EQ(seen.bytes, 1518u + 101 + 50); // as in the file, like capinfos
    EXPECT_EQ(seen.wire_bytes, 1518u + 104 + 104);
    EXPECT_EQ(seen.longest, 1514u);
    EXPECT_EQ(seen.cut_frames, 1u); // of the second only the FCS is cut
    EXPECT_EQ(to_text(of(pcap_header() + pcap_record(false, 1, 0, frame_of(64)))).find("FCS"), std::string::npos);
}

TEST_F(Check, MentionsTheSnapshotLengthAndTheDate)
{
    std::string text = to_text(of(pcap_header() + pcap_record(false, 1'700'000'000, 0, frame_of(60), 1500)));
    EXPECT_NE(text.find("1 cut by the snapshot length"), std::string::npos) << text;
    EXPECT_NE(text.find("from 2023-11-14T22:13:20"), std::string::npos) << text;
}

} // namespace
} // namespace weftio::replay::test
