// A Weftio port whose packets the test makes, mbuf by mbuf, and a fake kernel of one lane.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include "unit/device/fixture.hpp"
#include "unit/steering/frames.hpp"
#include "weftio/weftio.hpp"

struct rte_ring;

namespace weftio::test {

using frames::bytes;

/// A DPDK port on rings that the test fills, one for each engine: what a port queue sends arrives there again. For
/// tests of receiving, which need several engines, and mbufs with segments or a driver's flags. For tests of sending
/// there is sending_port (unit/txq), whose frames do not come back. The destructor checks that every mbuf has come
/// back, so declare it before the queues and flows on it.
class injected_port {
 public:
    /// Inline mode unless `options` say otherwise: only the test runs the engine.
    explicit injected_port(port_options options = {.mode = engine_mode::inline_worker});
    injected_port(const injected_port&) = delete;
    injected_port& operator=(const injected_port&) = delete;
    ~injected_port();

    const port& get() const { return *port_; }
    port& get() { return *port_; }
    port_counters counters() const { return port_->counters(); }

    /// An mbuf with these bytes; nullptr if all mbufs are in use.
    rte_mbuf* make(const bytes& frame) const;
    /// One packet in several segments.
    rte_mbuf* make(std::initializer_list<bytes> segments) const;
    /// Puts an mbuf on the wire, which owns it afterwards. Returns false, and frees the mbuf, if the wire is full.
    bool send(rte_mbuf* mbuf, unsigned queue = 0) const;
    bool send(const bytes& frame, unsigned queue = 0) const;
    unsigned on_the_wire(unsigned queue = 0) const;
    /// The oldest frame on the wire, or nullptr. When the test frees it, it counts as sent by the driver.
    rte_mbuf* take(unsigned queue = 0) const;
    /// Inline mode: runs the engines until one run moves nothing.
    void run_dry();

 private:
    std::string name_;
    rte_mempool* pool_;
    std::vector<rte_ring*> wires_;
    std::optional<port> port_;
};

/// Sets the timestamp of an mbuf as a driver does.
void stamp(rte_mbuf& mbuf, std::uint64_t driver_time);

/// A fake kernel: uses a queue by the device functions from the test's thread.
class fake_kernel {
 public:
    explicit fake_kernel(const eth_rxq& queue) : rxq_(queue.handle()) {}

    /// Receives the packets that have arrived, at most `most` (0: all). Does not wait; in inline mode it runs the
    /// engine.
    std::vector<weftio_dev_packet> receive(std::uint32_t most = 0);
    /// Receives one packet. The test fails if there is not exactly one.
    weftio_dev_packet receive_one();
    void release(std::uint32_t count);
    std::uint32_t held() const { return rxq_->received - rxq_->released; }

 private:
    weftio_dev_eth_rxq* rxq_;
};

inline bytes content(const weftio_dev_packet& packet)
{
    return {packet.address, packet.address + packet.bytes};
}

/// A frame whose bytes all depend on its number, so that every change is detected. Not IP.
bytes numbered_frame(std::uint32_t number, std::size_t frame_bytes = 60);
std::uint32_t number_of(const weftio_dev_packet& packet);
/// Whether the packet is the complete and unchanged numbered_frame() of its number.
bool is_intact(const weftio_dev_packet& packet);

/// Whether every received packet is counted: received = delivered + held + dropped.
testing::AssertionResult conserves(const port_counters& counters);
/// Whether `sent` packets have been received, all are counted, and none is held any more.
testing::AssertionResult all_accounted(const port_counters& counters, std::uint64_t sent);
std::uint64_t dropped(const port_counters& counters, drop_reason reason);

} // namespace weftio::test
