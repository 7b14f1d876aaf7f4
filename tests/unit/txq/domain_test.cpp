// What queues of a protection domain may send from.
#include <gmock/gmock.h>

#include "sending_port.hpp"

namespace weftio::test {
namespace {

using testing::HasSubstr;

class Domains : public testing::Test {
 protected:
    entry_words from(const weftio_dev_buf& buffer) const
    {
        return send_entry(
            {ethernet_segments(),
             {pointer(60, weftio_swap32(buffer.lkey_be), reinterpret_cast<std::uint64_t>(buffer.address))}});
    }
    /// Sends one entry from there on a queue that has failed or not. Returns how many frames came out.
    std::size_t send(const eth_txq& queue, const weftio_dev_buf& buffer)
    {
        raw_queue raw(queue);
        raw.append(from(buffer));
        raw.push();
        return port.send_all().size();
    }

    device cpu = device::open("cpu");
    sending_port port;
    const protection_domain domain = protection_domain::make();
};

TEST_F(Domains, SendFromTheirOwnBuffers)
{
    buf_arr ours(port.get(), cpu, {.count = 1, .buffer_bytes = 64}),
        theirs(port.get(), cpu, {.count = 1, .buffer_bytes = 64, .domain = domain});
    eth_txq our_queue(port.get(), cpu, {.entries = 64}),
        their_queue(port.get(), cpu, {.entries = 64, .domain = domain});
    EXPECT_EQ(send(our_queue, weftio_dev_buf_get(ours.handle(), 0)), 1u);
    EXPECT_EQ(send(their_queue, weftio_dev_buf_get(theirs.handle(), 0)), 1u);
    for (eth_txq* queue : {&our_queue, &their_queue}) {
        queue->reset(); // which changes no domain
        EXPECT_EQ(send(*queue, weftio_dev_buf_get((queue == &our_queue ? theirs : ours).handle(), 0)), 0u);
        EXPECT_TRUE(queue->failed());
    }
}

TEST_F(Domains, SendFromTheSlotsOfTheirReceiveQueues)
{
    eth_rxq slots(port.get(), cpu, {.packets = 64, .domain = domain});
    eth_txq our_queue(port.get(), cpu, {.entries = 64}),
        their_queue(port.get(), cpu, {.entries = 64, .domain = domain});
    for (int life = 0; life < 2; ++life) {
        const weftio_dev_buf slot{.address = slots.handle()->slots, .bytes = 64, .lkey_be = slots.handle()->lkey_be};
        EXPECT_EQ(send(their_queue, slot), 1u);
        EXPECT_EQ(send(our_queue, slot), 0u);
        slots.reset();
        our_queue.reset();
        their_queue.reset();
    }
}

} // namespace
} // namespace weftio::test
