// Reasons of refusals: each has a sentence of its own, a syndrome, and a NAK where a peer hears of it.
#include "core/refusal.hpp"

#include <set>
#include <string>

#include <gmock/gmock.h>

#include "weftio/device/cqe.h"

namespace weftio::test {
namespace {

const std::set<std::uint8_t> syndromes{
    WEFTIO_SYNDROME_LOCAL_LENGTH,     WEFTIO_SYNDROME_LOCAL_QP_OPERATION, WEFTIO_SYNDROME_LOCAL_PROTECTION,
    WEFTIO_SYNDROME_FLUSHED,          WEFTIO_SYNDROME_WINDOW_BIND,        WEFTIO_SYNDROME_BAD_RESPONSE,
    WEFTIO_SYNDROME_LOCAL_ACCESS,     WEFTIO_SYNDROME_REMOTE_INVALID,     WEFTIO_SYNDROME_REMOTE_ACCESS,
    WEFTIO_SYNDROME_REMOTE_OPERATION, WEFTIO_SYNDROME_RETRIES_EXCEEDED,   WEFTIO_SYNDROME_NOT_READY_EXCEEDED};

TEST(Reasons, HaveEachASentenceASyndromeAndANakThatExists)
{
    std::set<std::string> sentences;
    for (unsigned number = 0; number < core::all_refusals; ++number) {
        const auto reason = static_cast<refusal>(number);
        const std::string sentence = explain(static_cast<std::uint8_t>(number));
        EXPECT_TRUE(sentences.insert(sentence).second) << sentence;
        EXPECT_GE(sentence.size(), 8u) << number;
        EXPECT_NE(sentence, "unknown reason") << number;
        EXPECT_EQ(sentence, explain(reason));
        EXPECT_EQ(syndromes.contains(core::syndrome_of(reason)), reason != refusal::none) << sentence;
        EXPECT_THAT(core::nak_of(reason),
                    testing::AnyOf(core::no_nak, core::nak_invalid, core::nak_access, core::nak_operational));
    }
    for (unsigned number = core::all_refusals; number < 256; ++number)
        EXPECT_STREQ(explain(static_cast<std::uint8_t>(number)), "unknown reason");
}

TEST(Reasons, BecomeTheSyndromeThatHardwareReports)
{
    EXPECT_EQ(core::error_word_of(refusal::none), 0u);
    EXPECT_EQ(core::error_word_of(refusal::unknown_key), 0x0804u);
    EXPECT_EQ(core::error_word_of(refusal::frame_too_long), 0x0701u);
    EXPECT_EQ(core::error_word_of(refusal::message_too_long), 0x2101u);
    EXPECT_EQ(core::error_word_of(refusal::misaligned_atomic), 0x2302u);
    EXPECT_EQ(core::error_word_of(refusal::flushed), 0x1f05u);
    EXPECT_EQ(core::error_word_of(refusal::read_lost), 0x3214u);
}

/// A requester learns of a request's refusal no more than the NAK says, which is what the peer's host hears too.
TEST(Reasons, OfARequestReachTheRequesterAsTheNakSays)
{
    const std::pair<std::uint8_t, std::uint8_t> naks[]{{core::nak_invalid, WEFTIO_SYNDROME_REMOTE_INVALID},
                                                       {core::nak_access, WEFTIO_SYNDROME_REMOTE_ACCESS},
                                                       {core::nak_operational, WEFTIO_SYNDROME_REMOTE_OPERATION},
                                                       {0x64, WEFTIO_SYNDROME_REMOTE_OPERATION},
                                                       {0x7f, WEFTIO_SYNDROME_REMOTE_OPERATION}};
    for (const auto& [nak, syndrome] : naks)
        EXPECT_EQ(core::syndrome_of(core::reason_of_nak(nak)), syndrome) << int(nak);
}

/// The peer has named a key of its request; that of a receive entry it has not.
TEST(Reasons, OfAReceiveEntryAreNoErrorOfThePeersMemory)
{
    EXPECT_EQ(core::nak_of(refusal::unknown_key), core::nak_access);
    EXPECT_EQ(core::nak_of_receive(refusal::unknown_key), core::nak_operational);
    EXPECT_EQ(core::nak_of_receive(refusal::no_local_write), core::nak_operational);
    EXPECT_EQ(core::nak_of_receive(refusal::receive_too_short), core::nak_invalid);
    EXPECT_EQ(core::nak_of(refusal::wrong_doorbell), core::nak_operational);
}

} // namespace
} // namespace weftio::test
