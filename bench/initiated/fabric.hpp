// Ports, memory and queue pairs that the rows of the benchmark share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "initiated/post.h"
#include "weftio/weftio.hpp"

namespace weftio::bench {

/// Who posts the entries of a queue pair.
enum class poster { kernel, proxy };

/// Cores of engines and of proxies. Empty: the system decides, and engines yield their cores.
struct initiated_cores {
    std::vector<int> engines, proxies;
};

/// A ring of requests, as its proxy sees it.
struct proxy_ring {
    initiated_words* words;
    const weftio_u32* requests;
    std::uint32_t depth;
    bool one_queue; ///< all requests are for one queue pair: their completions go back to the kernel
};

/// A queue pair that a proxy posts to. Only one thread uses it.
struct proxy_queue {
    weftio_dev_rdma* rdma;
    weftio_dev_remote remote;
    weftio_dev_buf here;
    std::uint32_t position; ///< of the next entry
};

/// What joins the two ends of a queue pair.
enum class path {
    loopback, ///< one port: an entry is a copy from memory to memory
    wire,     ///< two ports and a wire in shared memory: packets, as between machines
};

/// Ports with an engine thread each: `engines` of them. Over wires there are as many on each side: near ends of queue
/// pairs are on one side, far ends on the other. Queue pair n of an owner is at port n % engines.
class fabric {
 public:
    static constexpr std::uint32_t depth = 512; ///< of each send ring
    static constexpr std::uint32_t most_proxies = 4;

    /// @param devices  one or two that run the kernels: the first one has the memory that is sent, the last one the
    ///                 memory that is written
    /// @param bytes    of the memory that is sent, and of the memory that is written
    /// @param payload  kind of these two; cpu_device: sent() and written() are there
    /// @param mtu      of the paths of queue pairs
    /// @throws weftio::error errc::not_reachable one device cannot use pinned memory of the other
    fabric(std::span<const device> devices, path path, std::uint32_t engines, std::size_t bytes, memory_kind payload,
           std::uint32_t mtu);

    std::uint32_t devices() const noexcept { return static_cast<std::uint32_t>(devices_.size()); }
    const device& kernels(std::uint32_t number = 0) const noexcept { return devices_[number]; }
    /// For titles: "8 engines", "4 engines on each side of wires, two devices".
    std::string engines() const;
    const initiated_cores& cores() const noexcept { return cores_; }
    /// Queue pair `number` of those that kernels of a device post to, or of those that proxies post to. It is made if
    /// there is none yet, and lives as long as the fabric.
    const rdma_queue& near_end(poster who, std::uint32_t device, std::uint32_t number);
    /// For entries whose offsets count from `offset`, in the memory that is sent and in the memory that is written.
    weftio_dev_buf here(std::size_t offset, std::size_t bytes) const { return sent_region_->buffer(offset, bytes); }
    weftio_dev_remote there(std::size_t offset, std::size_t bytes) const;
    /// Of either kind: copies as many bytes as the vector has, to what is sent or written, or from what was written.
    void put_sent(const std::vector<std::uint8_t>& from) { sent_.upload(from.data(), from.size()); }
    void put_written(const std::vector<std::uint8_t>& from) { written_.upload(from.data(), from.size()); }
    void get_written(std::vector<std::uint8_t>& to) const { written_.download(to.data(), to.size()); }
    std::uint8_t* sent() const noexcept { return static_cast<std::uint8_t*>(sent_.cpu_address()); }
    std::uint8_t* written() const noexcept { return static_cast<std::uint8_t*>(written_.cpu_address()); }
    /// Device addresses of the same memory.
    std::uint8_t* sent_on_device() const noexcept { return static_cast<std::uint8_t*>(sent_.device_address()); }
    std::uint8_t* written_on_device() const noexcept { return static_cast<std::uint8_t*>(written_.device_address()); }
    std::size_t bytes() const noexcept { return sent_.bytes(); }

 private:
    struct pair {
        rdma_queue near_end, far_end;
    };
    port open(std::uint32_t number, std::uint32_t engine) const;

    const path path_;
    const std::uint32_t mtu_;
    const std::vector<device> devices_;
    const device cpu_ = device::open("cpu");
    initiated_cores cores_;
    memory sent_, written_;
    std::vector<port> ports_, far_ports_; ///< of near and far ends; the same ports without wires
    std::vector<rdma_device> near_, far_;
    std::unique_ptr<memory_region> sent_region_, written_region_;
    std::vector<std::deque<pair>> pairs_; ///< of each device, and of the proxies
};

/// Where the bytes of a way lie, in the memory that is sent and in the memory that is written.
struct way_bytes {
    std::size_t sent, sent_bytes, written, written_bytes;
    std::uint32_t device = 0; ///< number of the one whose kernel uses the way
};

/// Ways of kernels to queue pairs, of their own or of a proxy, in memory of each device.
class ways {
 public:
    /// @param of_ring  consecutive ways that share a ring to the proxy
    ways(fabric& fabric, poster who, std::span<const way_bytes> bytes, std::uint32_t of_ring = 1);
    /// All of them, in memory of a device. @param number  of the device
    const initiated_way* on_device(std::uint32_t number = 0) const noexcept
    {
        return static_cast<const initiated_way*>(tables_[number].device_address());
    }
    std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(ways_.size()); }
    /// All rings, and all queue pairs, as proxies see them. @pre the queue pairs are of proxies
    std::vector<proxy_ring> rings() const;
    std::vector<proxy_queue> queues() const;
    /// Entries that the queue pairs have executed: those that their peers have acknowledged.
    std::uint64_t executed() const;
    /// The same, when it is `total`, or after 10 s: the bytes of an entry arrive before its acknowledgment.
    std::uint64_t executed_of(std::uint64_t total) const;

 private:
    std::uint32_t rings_count() const noexcept { return (count() + of_ring_ - 1) / of_ring_; }

    const std::uint32_t of_ring_;
    std::vector<const rdma_queue*> near_ends_;
    std::vector<initiated_way> ways_;
    memory words_, requests_;
    std::vector<memory> tables_;
};

} // namespace weftio::bench
