// The ring of frames between two members.
#include "wire_scene.hpp"

#include <deque>

namespace weftio::test {

namespace {

using wires::channel_in, wires::channel_out, wires::record, wires::ring_bytes, wires::unit_bytes;

/// A ring that ends where its memory ends.
class Lane : public testing::Test {
 protected:
    /// Puts a record that says `bytes`, of which `there` are published, at a position.
    void forge(std::uint64_t position, std::uint32_t bytes, std::uint64_t there)
    {
        const record head{.bytes = bytes, .reserved = 0};
        std::memcpy(&memory[position % ring_bytes], &head, sizeof head);
        state.consumed = position;
        state.produced = position + there;
    }
    /// Whether such a record is passed over, and the ring is empty then.
    bool is_passed_over(std::uint64_t position, std::uint32_t bytes, std::uint64_t there)
    {
        forge(position, bytes, there);
        channel_in in(state, memory.data());
        const bool none = in.front().empty();
        return none && in.take_damaged() && !in.take_damaged() && state.consumed == position + there &&
               in.front().empty();
    }

    wires::channel_state state{};
    std::vector<std::byte> memory = std::vector<std::byte>(ring_bytes);
};

TEST_F(Lane, KeepsFramesOfAnyLengthInOrderHoweverFullItIs)
{
    dice random(7);
    channel_out out(state, memory.data());
    channel_in in(state, memory.data());
    std::deque<frame> model;
    std::uint64_t full = 0, number = 0;
    for (unsigned round = 0; round != 300; ++round) {
        const unsigned most = random(4) == 0 ? 16'000 : 300;
        for (frame sent; out.put(sent = numbered(everybody, number, 60 + random(most))); ++number)
            model.push_back(sent);
        ++full;
        out.publish();
        for (std::size_t left = random(static_cast<unsigned>(model.size()) + 1); left != 0; --left) {
            const auto got = in.front();
            ASSERT_TRUE(std::ranges::equal(got, model.front())) << "in round " << round;
            in.pop();
            model.pop_front();
        }
        in.release();
        EXPECT_EQ(out.waiting() == 0, model.empty());
    }
    EXPECT_GT(number, 10'000u);
    EXPECT_FALSE(in.take_damaged());
}

TEST_F(Lane, BelievesNoRecordThatMakesNoSense)
{
    const std::uint64_t last = 5 * std::uint64_t{ring_bytes} - unit_bytes;
    EXPECT_TRUE(is_passed_over(0, 0, 64));
    EXPECT_TRUE(is_passed_over(0, 100, 64)) << "more than was published";
    EXPECT_TRUE(is_passed_over(0, wires::most_frame_bytes + 1, 32768));
    EXPECT_TRUE(is_passed_over(last, 100, 128)) << "beyond the end of the ring";
    EXPECT_TRUE(is_passed_over(last, record::skip, 64)) << "nothing behind the skip";
    EXPECT_TRUE(is_passed_over(0, record::skip, 128));
    EXPECT_TRUE(is_passed_over(64, 60, 2 * ring_bytes)) << "more than the ring has";
    EXPECT_TRUE(is_passed_over(64, 60, 100)) << "no multiple of a unit";
    EXPECT_TRUE(is_passed_over(64, 60, std::uint64_t{0} - 64)) << "going back";
}

} // namespace

} // namespace weftio::test
