// Ports on a wire in shared memory.
#include "wire_scene.hpp"

#include <fmt/format.h>

#include "software_nic.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {

namespace {

constexpr std::uint32_t slot_bytes = 8192;

/// A port on a wire that no other test has, and queues for frames.
struct wired_end {
    explicit wired_end(port_options options = {}) : at(open(options)) {}
    static std::string spec() { return fmt::format("wire:weftio-test-{}", ::getpid()); }
    static port open(const port_options& options) { return port::open(spec(), options); }

    void send(const frame& what) const
    {
        std::copy(what.begin(), what.end(), static_cast<std::uint8_t*>(buffer.cpu_address(0)));
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(out.handle(), weftio_dev_buf_get(buffer.handle(), 0),
                                                         static_cast<std::uint32_t>(what.size()), WEFTIO_DEV_SEND_NONE),
                  WEFTIO_DEV_OK);
        weftio_dev_eth_txq_commit_strong(out.handle());
        weftio_dev_eth_txq_push(out.handle());
        EXPECT_EQ(weftio_dev_eth_txq_wait_room(out.handle(), 64, patience_ns), WEFTIO_DEV_OK);
    }
    frame receive() const
    {
        weftio_u32 count = 0, first = 0;
        weftio_dev_packet packet{};
        EXPECT_EQ(weftio_dev_eth_rxq_receive_thread(in.handle(), 1, patience_ns, &count, &first), WEFTIO_DEV_OK);
        if (count == 0 || weftio_dev_eth_rxq_packet(in.handle(), first, &packet) != WEFTIO_DEV_OK)
            return {};
        const auto* const bytes = static_cast<const std::uint8_t*>(packet.address);
        frame got(bytes, bytes + packet.bytes);
        weftio_dev_eth_rxq_release(in.handle(), first, count);
        return got;
    }

    const device cpu = device::open("cpu");
    const port at;
    const eth_txq out{at, cpu, {.entries = 64}};
    const eth_rxq in{at, cpu, {.packets = 64, .max_packet_bytes = slot_bytes}};
    const flow everything{at, {}, flow_action::to(in)};
    const buf_arr buffer{at, cpu, {.count = 1, .buffer_bytes = slot_bytes}};
};

TEST(WirePort, CarriesFramesToPortsOfItsWire)
{
    const wired_end one, two;
    EXPECT_EQ(one.at.driver(), "wire");
    EXPECT_EQ(one.at.mtu(), 4200);
    EXPECT_TRUE(one.at.link_up());
    EXPECT_NE(one.at.mac(), two.at.mac());
    for (std::uint64_t number = 0; number != 300; ++number) {
        const frame there = numbered(two.at.mac(), number, 60 + number * 4154 / 299),
                    back = numbered(everybody, number, 60);
        one.send(there);
        ASSERT_EQ(two.receive(), there);
        two.send(back);
        ASSERT_EQ(one.receive(), back);
    }
    EXPECT_EQ(one.at.counters().tx_dropped, 0u);
    one.send(numbered({2, 0x57, 0, 0, 1, 9}, 1, 60));
    EXPECT_EQ(one.at.counters().tx_dropped, 1u);
}

TEST(WirePort, CarriesFramesOfTheMtuThatItIsOpenedWith)
{
    const wired_end one({.mtu = 8000}), two({.mtu = 8000}), less;
    EXPECT_EQ(one.at.mtu(), 8000);
    const frame sent = numbered(two.at.mac(), 1, 8014);
    one.send(sent);
    EXPECT_EQ(two.receive(), sent);
    one.send(numbered(less.at.mac(), 1, 8014));
    one.send(numbered(less.at.mac(), 2, 4214));
    EXPECT_EQ(less.receive(), numbered(less.at.mac(), 2, 4214));
    EXPECT_EQ(less.at.counters().driver_missed, 1u) << "one was longer than its MTU";
}

TEST(WirePort, RefusesWhatAWireIsNot)
{
    const auto refused = [](const std::string& spec, const port_options& options, errc code, const char* words) {
        try {
            port::open(spec, options);
            ADD_FAILURE() << spec;
        } catch (const error& refusal) {
            EXPECT_EQ(refusal.code(), code) << refusal.what();
            EXPECT_NE(std::string(refusal.what()).find(words), std::string::npos) << refusal.what();
        }
    };
    refused("wire:", {}, errc::invalid_argument, "port wire:: the name of a wire has 1 to 64 characters");
    refused("wire:a/b", {}, errc::invalid_argument, "port wire:a/b: the name of a wire has letters, digits and . _ -");
    refused("wire:x", {.engines = 2}, errc::not_supported, "port wire:x: engines is 2, and the port of a wire has one");
    EXPECT_FALSE(std::filesystem::exists(wires::path_of("", "x")));
}

/// A queue pair of a port, whose address ends with `number`.
struct rdma_end {
    rdma_end(const wired_end& end, unsigned number)
        : device(end.at, {.address = fmt::format("10.0.0.{}", number)}), queue(device, end.cpu),
          memory(end.cpu.allocate(1 << 20, memory_kind::cpu_device)),
          region(end.at, memory, {.rights = access::local_write | access::remote_write})
    {}
    rdma_device device;
    rdma_queue queue;
    weftio::memory memory;
    memory_region region;
};

TEST(WirePort, CarriesRdmaWithNumbersThatDoNotMeet)
{
    const wired_end one, two;
    rdma_end here(one, 1), there(two, 2);
    EXPECT_EQ(here.queue.address().peer().queue, 16u);
    EXPECT_EQ(there.queue.address().peer().queue, 16u + 16384);
    here.queue.connect(there.queue.address());
    there.queue.connect(here.queue.address());
    auto* const bytes = static_cast<std::uint8_t*>(here.memory.cpu_address());
    for (std::uint32_t at = 0; at != 1 << 20; ++at)
        bytes[at] = static_cast<std::uint8_t>(at * 7 + at / 256);
    weftio_dev_rdma* const rdma = here.queue.handle();
    ASSERT_EQ(weftio_dev_rdma_write(rdma, remote_region::of(there.region).on_device(), 0, here.region.buffer(), 0,
                                    1 << 20, WEFTIO_DEV_SEND_NONE),
              WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_commit_wait(rdma, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(std::memcmp(bytes, there.memory.cpu_address(), 1 << 20), 0);
    const auto members = software_nic(one.at).device().shared()->member().members();
    ASSERT_EQ(members.size(), 2u);
    EXPECT_EQ(members[1].first_queue, 16u + 16384);
    EXPECT_EQ(members[1].queues, 16384u);
    EXPECT_EQ(members[1].first_address, (wires::gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2}));
}

} // namespace

} // namespace weftio::test
