// A Weftio port on a wire of the test, and entries that the test writes word by word.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
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

/// Distance of a deadline that no test reaches; the horizon of the queue must be larger.
inline constexpr std::uint64_t an_hour_ns = 3'600'000'000'000;

/// A DPDK port on two rings: what queues send comes out of one, what the test puts into the other arrives. For tests of
/// sending, which see each frame as the driver got it, and fill the wire on purpose. For tests of receiving there is
/// injected_port (unit/nic), on which every frame sent is received.
class sending_port {
 public:
    static constexpr std::uint32_t wire_frames = 2047; ///< frames after which the driver accepts no more

    /// Inline mode unless `options` say otherwise: only the test runs the engine.
    explicit sending_port(port_options options = {.mode = engine_mode::inline_worker});
    sending_port(const sending_port&) = delete;
    sending_port& operator=(const sending_port&) = delete;
    ~sending_port();

    const port& get() const { return *port_; }
    port& get() { return *port_; }
    /// Inline mode: runs the engine until one run moves nothing.
    void run_dry();

    std::uint32_t on_the_wire() const;
    /// The oldest frame as the driver got it, or nullptr. When the test frees it, it counts as sent by the driver.
    rte_mbuf* take_mbuf() const;
    /// Takes all frames off the wire, oldest first, and frees their mbufs, so that they count as sent.
    std::vector<bytes> take() const;
    /// Runs the engine and takes frames until the queues have nothing more to send now.
    std::vector<bytes> send_all();
    /// Puts a frame on the wire to the port. Returns false if no mbuf is free or the wire is full.
    bool arrive(const bytes& frame) const;

 private:
    std::string name_;
    rte_mempool* pool_;
    rte_ring *out_, *in_;
    std::optional<port> port_;
};

/// 16 bytes of an entry, as words in memory order.
using segment = std::array<std::uint32_t, 4>;
using entry_words = std::vector<segment>;

/// Control segment without the index and the queue's number, which raw_queue fills in.
segment control(std::uint32_t opcode, std::uint32_t segments, std::uint8_t completion = WEFTIO_CE_ALWAYS);
/// Ethernet segment with `header` inlined.
entry_words ethernet_segments(const bytes& header = {}, std::uint8_t cs_flags = 0);
segment pointer(std::uint32_t byte_count, std::uint32_t key, std::uint64_t address);
/// Inline data: 4 bytes of length, the bytes, padding.
entry_words inline_data(const bytes& data);
entry_words wait_segments(std::uint64_t value, std::uint32_t condition = WEFTIO_WAIT_CYCLIC_SMALLER);

/// A SEND with a control segment and these segments.
entry_words send_entry(std::initializer_list<entry_words> parts, std::uint8_t completion = WEFTIO_CE_ALWAYS);
entry_words wait_entry(std::uint64_t value, std::uint32_t condition = WEFTIO_WAIT_CYCLIC_SMALLER);

/// The kernel's side of a queue on the CPU, which can also write invalid entries.
class raw_queue {
 public:
    explicit raw_queue(weftio_dev_eth_txq* txq) : txq_(txq) {}
    explicit raw_queue(const eth_txq& queue) : raw_queue(queue.handle()) {}

    /// Writes an entry at the next position, which it returns. Fills in the queue number, and the index unless `index`
    /// is given.
    std::uint32_t append(entry_words entry, std::optional<std::uint32_t> index = {});
    /// Commits all appended entries and rings the doorbell.
    void push();
    /// Writes `ready` to the doorbell record and rings the doorbell.
    void claim(std::uint32_t ready);
    void skip_to(std::uint32_t position) { next_ = position; }
    std::uint32_t next() const { return next_; }
    weftio_dev_eth_txq* handle() const { return txq_; }

 private:
    weftio_dev_eth_txq* txq_;
    std::uint32_t next_ = 0;
};

/// enqueued = sent + waited + failed + flushed.
testing::AssertionResult conserves(const eth_txq_counters& counters);

/// Sets the next index of a queue to `index`, on the NIC's side and on the kernel's. @pre the queue is idle
void start_at(const port& port, const eth_txq& queue, std::uint32_t index);

/// A frame of `size` bytes that contains its number; all bytes depend on the number. Not IP.
bytes numbered(std::uint32_t number, std::size_t size = 60);
std::uint32_t number_in(const bytes& frame);
/// `count` numbered frames from `first` on.
std::vector<bytes> numbered_run(std::uint32_t first, std::uint32_t count, std::size_t size = 60);

/// Buffers with numbered frames from 0 on.
class numbered_buffers {
 public:
    numbered_buffers(const port& port, const device& device, std::uint32_t count, std::uint32_t size = 60);
    weftio_dev_buf operator[](std::uint32_t number) const { return weftio_dev_buf_get(frames_.handle(), number); }
    const buf_arr& array() const { return frames_; }
    std::uint32_t size() const { return size_; }

 private:
    std::uint32_t size_;
    buf_arr frames_;
};

} // namespace weftio::test
