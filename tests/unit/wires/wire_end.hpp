// Ports on a wire in shared memory, with queues.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "software_nic.hpp"
#include "weftio/weftio.hpp"
#include "wire_scene.hpp"

namespace weftio::test {

constexpr std::uint32_t slot_bytes = 8192;

/// A port on a wire that no other test uses, and queues for frames.
struct wired_end {
    /// @param words  text after the name of the wire in the port spec
    explicit wired_end(port_options options = {}, const std::string& words = "") : at(open(options, words)) {}
    static std::string spec() { return fmt::format("wire:weftio-test-{}", ::getpid()); }
    static port open(const port_options& options, const std::string& words = "")
    {
        return port::open(spec() + words, options);
    }

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

/// A queue pair of a port; its IPv4 address ends with `number`.
struct rdma_end {
    rdma_end(const wired_end& end, unsigned number)
        : device(end.at, {.address = fmt::format("10.0.0.{}", number)}), queue(device, end.cpu),
          memory(end.cpu.allocate(memory_bytes, memory_kind::cpu_device)),
          region(end.at, memory, {.rights = access::local_write | access::remote_write})
    {}
    /// Fills its memory with a pattern, writes all of it to the memory of another end, and compares.
    void write_all(const rdma_end& to)
    {
        auto* const bytes = static_cast<std::uint8_t*>(memory.cpu_address());
        for (std::uint32_t at = 0; at != memory_bytes; ++at)
            bytes[at] = static_cast<std::uint8_t>(at * 7 + at / 256);
        weftio_dev_rdma* const rdma = queue.handle();
        ASSERT_EQ(weftio_dev_rdma_write(rdma, remote_region::of(to.region).on_device(), 0, region.buffer(), 0,
                                        memory_bytes, WEFTIO_DEV_SEND_NONE),
                  WEFTIO_DEV_OK);
        EXPECT_EQ(weftio_dev_rdma_commit_wait(rdma, 0), WEFTIO_DEV_OK);
        EXPECT_EQ(std::memcmp(bytes, to.memory.cpu_address(), memory_bytes), 0);
    }

    static constexpr std::uint32_t memory_bytes = 1 << 20;
    rdma_device device;
    rdma_queue queue;
    weftio::memory memory;
    memory_region region;
};

} // namespace weftio::test
