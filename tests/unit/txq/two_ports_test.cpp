// One region, sent from at two ports.
#include <gmock/gmock.h>

#include <optional>

#include "sending_port.hpp"

namespace weftio::test {
namespace {

using testing::HasSubstr;

/// A port, a queue there, and what has failed.
struct sending_end {
    explicit sending_end(const device& cpu) : queue(port.get(), cpu, {.entries = 64})
    {
        progress.attach(queue, {.on_sent = {}, .on_error = [this](const send_failure& each) { failure = each; }});
    }
    std::vector<bytes> send(const entry_words& entry)
    {
        raw.append(entry);
        raw.push();
        std::vector<bytes> sent = port.send_all();
        progress.progress();
        return sent;
    }

    sending_port port;
    eth_txq queue;
    raw_queue raw{queue};
    progress_engine progress;
    std::optional<send_failure> failure;
};

class OneRegion : public testing::Test {
 protected:
    OneRegion()
    {
        const bytes frame = numbered(7);
        std::copy(frame.begin(), frame.end(), static_cast<std::uint8_t*>(room.cpu_address()));
    }
    entry_words entry(std::uint32_t key) const
    {
        return send_entry(
            {ethernet_segments(), {pointer(60, key, reinterpret_cast<std::uint64_t>(room.device_address()))}});
    }
    /// By two pieces, which is not the short way.
    entry_words entry_in_pieces(std::uint32_t key) const
    {
        const auto address = reinterpret_cast<std::uint64_t>(room.device_address());
        return send_entry({ethernet_segments(), {pointer(40, key, address), pointer(20, key, address + 40)}});
    }

    device cpu = device::open("cpu");
    memory room = cpu.allocate(4096, memory_kind::cpu_device);
    sending_end one{cpu}, other{cpu};
};

TEST_F(OneRegion, IsSentFromAtTwoPortsUntilItEnds)
{
    std::optional<memory_region> region(std::in_place, one.port.get(), room);
    region->register_with(other.port.get());
    const std::uint32_t key = region->lkey();
    for (sending_end* end : {&one, &other}) {
        EXPECT_EQ(end->send(entry(key)), numbered_run(7, 1));
        EXPECT_EQ(end->send(entry_in_pieces(key)), numbered_run(7, 1));
    }
    region.reset();
    for (sending_end* end : {&one, &other}) {
        EXPECT_TRUE(end->send(entry(key)).empty());
        ASSERT_TRUE(end->failure);
        EXPECT_EQ(end->failure->syndrome, WEFTIO_SYNDROME_LOCAL_PROTECTION);
        EXPECT_THAT(end->failure->text, HasSubstr("no memory region has that key"));
    }
}

TEST_F(OneRegion, IsRefusedAtAPortThatItWasNotRegisteredWith)
{
    const memory_region region(one.port.get(), room);
    EXPECT_EQ(one.send(entry(region.lkey())), numbered_run(7, 1));
    EXPECT_TRUE(other.send(entry(region.lkey())).empty());
    ASSERT_TRUE(other.failure);
    EXPECT_THAT(other.failure->text, HasSubstr("no memory region has that key"));
}

} // namespace
} // namespace weftio::test
