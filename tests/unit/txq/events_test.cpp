// Events of a send queue, from the engine's thread to one reader.
#include <gtest/gtest.h>

#include <thread>

#include "nic/soft/work/send_events.hpp"

namespace weftio::nic::soft {

TEST(SendEvents, ComeInTheirOrderAcrossAllPartsAndRounds)
{
    constexpr std::uint32_t capacity = 256, count = 10 * capacity;
    send_events events(capacity);
    std::thread engine([&] {
        for (std::uint32_t position = 0; position < count;) {
            const std::uint64_t lost = events.lost.value();
            events.put({.position = position});
            if (events.lost.value() == lost)
                ++position;
            else
                std::this_thread::yield();
        }
    });
    for (std::uint32_t position = 0; position < count;) {
        send_event event;
        if (events.get(event))
            ASSERT_EQ(event.position, position++);
        else
            std::this_thread::yield();
    }
    engine.join();
    send_event none;
    EXPECT_FALSE(events.get(none));
}

TEST(SendEvents, KeepRoomForFailuresAndCountWhatFindsNone)
{
    for (const std::uint32_t capacity : {2u, 64u, 1024u}) {
        send_events events(capacity);
        for (std::uint32_t position = 0; position < 2 * capacity; ++position)
            events.put({.position = position});
        EXPECT_EQ(events.lost.value(), capacity + capacity / 8);
        for (std::uint32_t failure = 0; failure <= capacity / 8; ++failure)
            events.put({.position = failure, .reason = refusal::unknown_key});
        EXPECT_EQ(events.lost.value(), capacity + capacity / 8 + 1);
        send_event event;
        for (std::uint32_t position = 0; position < capacity; ++position)
            ASSERT_TRUE(events.get(event));
        EXPECT_FALSE(events.get(event));
        EXPECT_EQ(events.last_failure().position, capacity / 8);
    }
}

} // namespace weftio::nic::soft
