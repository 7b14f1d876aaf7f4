// The memory of a queue's rings, as passed to a NIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "devices/backend.hpp"
#include "weftio/access.hpp"
#include "weftio/device/cqe.h"
#include "weftio/device/wqe.h"

namespace weftio::nic {

/// How the queue pairs of a device bind memory windows: see rdma_device_options.
struct window_options {
    bool strict = true;
    bool type_2a = false;
};

class completion_queue;

/// Bytes of a block from `offset` on. The block lives as long as a NIC has the ring.
struct ring_memory {
    std::shared_ptr<const devices::memory_block> block{};
    std::size_t offset = 0;

    explicit operator bool() const noexcept { return block != nullptr; }
    /// nullptr: there is no block, or the CPU cannot access it.
    template <class T>
    T* cpu() const noexcept
    {
        return block && block->at.cpu ? reinterpret_cast<T*>(static_cast<std::byte*>(block->at.cpu) + offset) : nullptr;
    }
    template <class T>
    T* device() const noexcept
    {
        return block ? reinterpret_cast<T*>(static_cast<std::byte*>(block->at.device) + offset) : nullptr;
    }
    ring_memory behind(std::size_t bytes) const noexcept { return {block, offset + bytes}; }
};

/// The device memory to which staging copies packets: from slot k of the ring to slot k of this memory.
struct staging_target {
    std::shared_ptr<devices::copy_queue> copies; ///< nullptr: no staging, kernels read the slots of the ring
    std::byte* slots = nullptr;                  ///< device address of slot 0
};

/// The ring of an Ethernet receive queue.
struct receive_ring {
    ring_memory completions{}; ///< depth x 64 bytes
    ring_memory entries{};     ///< depth x 16 bytes: entry k points to slot k, and is written once
    ring_memory dbrec{};       ///< written by the kernel: total number of entries posted, low 16 bits, big-endian
    /// The start of the packet in slot 0. For lendable slots, the `headroom_bytes` before it belong to the slot, too.
    ring_memory slots{};
    std::uint32_t depth = 0;        ///< power of two, at most 65536
    std::uint32_t stride_bytes = 0; ///< distance of slots
    std::uint32_t slot_bytes = 0;   ///< the longest packet
    bool verify_checksums = true;
    bool lendable = true;           ///< false: slots have no headroom, or packets are written to them in order
    bool consecutive = false;       ///< packet n goes to slot n % depth
    std::uint32_t zeroed_bytes = 0; ///< bytes to zero after each packet, even beyond slot_bytes
    staging_target staged{};        ///< where packets are copied to before the kernel is notified

    /// Bytes before a packet that a driver needs to reinsert a stripped VLAN tag.
    static constexpr std::uint32_t headroom_bytes = 128;
};

/// How a queue completes its entries.
struct completion_target {
    std::shared_ptr<completion_queue> queue{}; ///< nullptr: the ring has completions of its own
    bool only_asked = false;                   ///< only entries that ask for it, and failed ones; false: all
    std::uint32_t user_index = 0;              ///< copied to completions, in addition to the queue's number
};

/// 8-byte words that the committer sets to a value other than 0 after the doorbell record, and that the NIC resets to
/// 0. Several queues may share them. Without such words, the NIC polls the record only.
struct doorbell_memory {
    static constexpr std::size_t to_the_next = 256; ///< distance of the two words

    ring_memory words{};
    unsigned count = 1; ///< 1 or 2, used alternately
};

/// The ring of a send queue of any kind (docs/formats.md, "Entries").
struct send_ring {
    ring_memory entries{}; ///< depth x 64 bytes, written by the kernel
    std::uint32_t depth = 0;
    ring_memory dbrec{}; ///< written by the kernel: blocks committed so far, low 16 bits, big-endian
    doorbell_memory doorbell{};
    ring_memory completion{}; ///< the collapsed completion, which the NIC overwrites; none: `completions` has a queue
    completion_target completions{};
    std::uint64_t horizon_ns = 0;
    protection_domain domain{}; ///< entries may name regions of this domain only
    ring_memory results{};      ///< file queue: depth x 8 bytes, written by the NIC
};

} // namespace weftio::nic
