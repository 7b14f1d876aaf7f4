// READs over a link that holds few packets, as the receive queue of a NIC does: what finds it full is lost.
#include <algorithm>
#include <cstdint>
#include <deque>

#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace roce_ends;

constexpr std::uint32_t mtu = 256, reads = 4, packets_of_one = 512, bytes_of_one = packets_of_one * mtu;

/// Both ends. One step is 10 us, in which eight packets leave the link to the requester.
class narrow_link {
 public:
    static constexpr std::size_t room = 32, leave = 8;

    void step()
    {
        now_ += 10'000;
        asks.send(to_responder_, 64, now_);
        for (const bytes& frame : to_responder_.frames)
            if (roce_packet packet; parse_roce(frame, packet) == weftio::net::roce_refusal::none)
                answers.receive(packet);
        to_responder_.frames.clear();
        answers.send(to_requester_, 64);
        for (bytes& frame : to_requester_.frames) {
            ++sent;
            if (queue_.size() != room)
                queue_.push_back(std::move(frame));
            else
                ++lost;
        }
        to_requester_.frames.clear();
        for (std::size_t at = 0; at != leave && !queue_.empty(); ++at, queue_.pop_front())
            if (roce_packet packet; parse_roce(queue_.front(), packet) == weftio::net::roce_refusal::none)
                asks.receive(packet, now_);
    }

    fake_memory memory{1 << 20};
    fake_sends sends;
    unsigned sent = 0, lost = 0; ///< answers

 private:
    fake_receives receives_;
    fake_wire to_responder_, to_requester_;
    std::deque<bytes> queue_;
    std::uint64_t now_ = 1;
    workspace shared_;

 public:
    requester asks{weftio::rdma_service::reliable, {.path_mtu = mtu}, sends, shared_};
    responder answers{weftio::rdma_service::reliable, {.path_mtu = mtu}, memory, receives_, shared_};
};

/// The first READ overruns the link. From then on the requester asks for what the link takes.
TEST(RoceNarrowLink, ReadsEndAndAskForLittleTwice)
{
    narrow_link ends;
    const bytes source = stamped(1 << 20, 9);
    std::copy(source.begin(), source.end(), ends.memory.data());
    for (std::uint32_t at = 0; at < reads; ++at)
        ends.sends.post(read_from(at * bytes_of_one), bytes(bytes_of_one), at + 1 != reads);
    for (unsigned steps = 0; steps < 200'000 && ends.sends.ends.size() != reads; ++steps)
        ends.step();
    ASSERT_EQ(ends.sends.ends.size(), reads);
    for (std::uint32_t at = 0; at < reads; ++at) {
        EXPECT_EQ(ends.sends.ends[at].result, refusal::none);
        EXPECT_TRUE(std::equal(ends.sends.entries[at].local.begin(), ends.sends.entries[at].local.end(),
                               &source[std::size_t{at} * bytes_of_one]));
    }
    EXPECT_GT(ends.lost, 0u);
    EXPECT_LT(ends.sent, reads * packets_of_one * 2);
}

} // namespace
