// Why the NIC refuses an entry, or cannot do what it says.
#pragma once

#include <cstdint>

namespace weftio::nic::soft {

/// Why an entry was refused, in more detail than a syndrome.
enum class refusal : std::uint8_t {
    none,
    unknown_opcode,
    wrong_index, ///< the entry carries another index: it was written to the wrong position, or not written
    wrong_queue,
    wrong_size,    ///< the size does not fit the segments
    wrong_segment, ///< a segment that this opcode does not take
    no_payload,    ///< a frame of no bytes
    too_long,      ///< longer than the port's MTU allows
    unknown_key,   ///< no region has that key; it may be that of an earlier region
    other_domain,  ///< the region of the key is of another protection domain than the queue
    no_right,      ///< the region may not be written
    outside_region,
    two_devices,    ///< pieces of the frame lie in memory of several devices that the CPU does not see
    wrong_wait,     ///< unknown condition, or 1,000,000,000 nanoseconds or more in the lower half
    too_far_ahead,  ///< waits beyond the horizon
    wrong_doorbell, ///< the record claims more entries than the ring holds
    port_gone,      ///< the device or its interface was removed
    link_down,      ///< the interface has been down, or without a carrier, for too long
    file_failed,    ///< the capture file cannot be written
    device_failed,  ///< the device whose copy engine was to copy has failed
    changed,        ///< the entry is not the one that was begun
    out_of_reach,   ///< the CPU does not see the memory, and nobody stages it
    bad_response,   ///< RDMA, from here to not_ready: how the peer answered, or did not
    lost_memory,
    receive_too_short,
    remote_invalid,
    remote_access,
    remote_operation,
    no_answer,
    not_ready,
    refused_peer, ///< no entry: what the peer asked for was refused, or its receive entry failed
    flushed,      ///< an earlier entry failed, or the queue was stopped
    unreliable,   ///< a READ or an atomic of a queue pair that has no answers
    memory_gone,  ///< the memory was unmapped, or its file truncated, while the region existed
};

/// The syndrome of a refusal in a completion, as hardware would report it (docs/formats.md, "Completions").
std::uint8_t syndrome_of(refusal reason) noexcept;
const char* to_string(refusal reason) noexcept;
/// Bytes 48 to 55 of a completion with an error, as a number: the reason in byte 54 (vendor), the syndrome in byte 55.
inline std::uint64_t error_word_of(refusal reason) noexcept
{
    return std::uint64_t{static_cast<std::uint8_t>(reason)} << 8 | syndrome_of(reason);
}

} // namespace weftio::nic::soft
