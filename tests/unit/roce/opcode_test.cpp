// What opcodes say of their packets.
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "net/roce_opcodes.hpp"
#include "net/roce_rules.hpp"

namespace {

using namespace weftio::net;
using enum roce_position;

/// Every opcode of InfiniBand's table that RoCEv2 packets of RC, UC and UD have, and its bytes between BTH and payload.
const std::map<int, int> extended_bytes = {
    {0x00, 0}, {0x01, 0},  {0x02, 0},  {0x03, 4},  {0x04, 0},  {0x05, 4},  {0x06, 16}, {0x07, 0},
    {0x08, 0}, {0x09, 4},  {0x0a, 16}, {0x0b, 20}, {0x0c, 16}, {0x0d, 4},  {0x0e, 0},  {0x0f, 4},
    {0x10, 4}, {0x11, 4},  {0x12, 12}, {0x13, 28}, {0x14, 28}, {0x16, 4},  {0x17, 4},  {0x20, 0},
    {0x21, 0}, {0x22, 0},  {0x23, 4},  {0x24, 0},  {0x25, 4},  {0x26, 16}, {0x27, 0},  {0x28, 0},
    {0x29, 4}, {0x2a, 16}, {0x2b, 20}, {0x64, 8},  {0x65, 12}, {0x81, 0}};

TEST(RoceOpcodes, AreThoseOfTheTableAndNoOthers)
{
    for (int opcode = 0; opcode < 256; ++opcode) {
        const roce_shape& shape = shape_of(static_cast<roce_opcode>(opcode));
        const auto known = extended_bytes.find(opcode);
        ASSERT_EQ(shape.known(), known != extended_bytes.end()) << opcode;
        if (shape.known()) {
            EXPECT_EQ(shape.extended_bytes, known->second) << opcode;
        }
    }
}

TEST(RoceOpcodes, BelongToTheirServices)
{
    EXPECT_EQ(shape_of(roce_opcode::rc_send_last_invalidate).service, roce_service::rc);
    EXPECT_EQ(shape_of(roce_opcode::uc_write_middle).service, roce_service::uc);
    EXPECT_EQ(shape_of(roce_opcode::ud_send_only).service, roce_service::ud);
    EXPECT_EQ(shape_of(roce_opcode::cnp).service, roce_service::congestion);
}

TEST(RoceOpcodes, GoToTheResponderOrComeFromIt)
{
    const std::set<int> responses = {0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12};
    for (const auto& [opcode, bytes] : extended_bytes) {
        const roce_shape& shape = shape_of(static_cast<roce_opcode>(opcode));
        EXPECT_EQ(shape.is_response(), responses.contains(opcode)) << opcode;
        EXPECT_EQ(shape.is_request(), !responses.contains(opcode) && opcode != 0x81) << opcode;
    }
    EXPECT_FALSE(shape_of(static_cast<roce_opcode>(0x15)).is_request());
}

TEST(RoceOpcodes, BeginAndEndMessages)
{
    const auto begins_and_ends = [](roce_opcode opcode) {
        return std::pair(shape_of(opcode).begins(), shape_of(opcode).ends());
    };
    EXPECT_EQ(begins_and_ends(roce_opcode::rc_write_first), std::pair(true, false));
    EXPECT_EQ(begins_and_ends(roce_opcode::uc_send_middle), std::pair(false, false));
    EXPECT_EQ(begins_and_ends(roce_opcode::rc_read_response_last), std::pair(false, true));
    EXPECT_EQ(begins_and_ends(roce_opcode::rc_fetch_add), std::pair(true, true));
}

TEST(RoceOpcodes, SayHowMuchPayloadThereMayBe)
{
    const auto fits = [](roce_opcode opcode, std::size_t bytes) { return payload_fits(shape_of(opcode), bytes, 1024); };
    for (roce_opcode full : {roce_opcode::rc_send_first, roce_opcode::rc_read_response_middle}) {
        EXPECT_TRUE(fits(full, 1024));
        EXPECT_FALSE(fits(full, 0));
        EXPECT_FALSE(fits(full, 1023));
        EXPECT_FALSE(fits(full, 1025));
    }
    EXPECT_TRUE(fits(roce_opcode::rc_write_last, 1) && fits(roce_opcode::rc_write_last, 1024));
    EXPECT_FALSE(fits(roce_opcode::rc_write_last, 0) || fits(roce_opcode::rc_write_last, 1025));
    EXPECT_TRUE(fits(roce_opcode::ud_send_only, 0) && fits(roce_opcode::ud_send_only, 1024));
    EXPECT_FALSE(fits(roce_opcode::ud_send_only, 1025));
    EXPECT_TRUE(fits(roce_opcode::rc_acknowledge, 0));
    EXPECT_FALSE(fits(roce_opcode::rc_acknowledge, 1));
    EXPECT_TRUE(fits(roce_opcode::cnp, 16));
    EXPECT_FALSE(fits(roce_opcode::cnp, 12) || fits(roce_opcode::cnp, 0));
    EXPECT_TRUE(fits(roce_opcode::rc_read_request, 0));
}

TEST(RoceOpcodes, AreFoundByWhatTheySay)
{
    for (const auto& [opcode, bytes] : extended_bytes) {
        const roce_shape& shape = shape_of(static_cast<roce_opcode>(opcode));
        const roce_extra extra = shape.has_immediate    ? roce_extra::immediate
                                 : shape.has_invalidate ? roce_extra::invalidate
                                                        : roce_extra::none;
        EXPECT_EQ(opcode_of(shape.service, shape.operation, shape.position, extra), static_cast<roce_opcode>(opcode));
    }
}

TEST(RoceOpcodes, ThatThereAreNotAreNotFound)
{
    using enum roce_operation;
    EXPECT_EQ(opcode_of(roce_service::rc, send, first, roce_extra::immediate), std::nullopt);
    EXPECT_EQ(opcode_of(roce_service::uc, send, only, roce_extra::invalidate), std::nullopt);
    EXPECT_EQ(opcode_of(roce_service::uc, read_request, only), std::nullopt);
    EXPECT_EQ(opcode_of(roce_service::ud, write, only), std::nullopt);
    EXPECT_EQ(opcode_of(roce_service::none, none, only), std::nullopt);
}

} // namespace
