// Why an entry, or a request of a peer, was refused.
#pragma once

#include <cstdint>

namespace weftio {

/// Why the NIC refuses an entry or a request of a peer, or cannot execute it: byte 54 of an error completion of the
/// software NIC, finer than the syndrome in byte 55 (docs/formats.md, "Completions"). Numbers never change.
enum class refusal : std::uint8_t {
    none = 0,
    unknown_opcode = 1,
    wrong_index = 2,        ///< the entry has another index: it was written to the wrong position, or was not written
    wrong_queue = 3,        ///< the entry has the number of another queue
    wrong_size = 4,         ///< the size does not fit the segments
    wrong_segment = 5,      ///< a segment that this opcode does not take
    no_payload = 6,         ///< a frame of 0 bytes
    frame_too_long = 7,     ///< longer than the port's MTU allows
    unknown_key = 8,        ///< no region has that key; it may be the key of an earlier region
    other_domain = 9,       ///< the region of the key is in another protection domain than the queue
    no_local_write = 10,    ///< the region lacks access::local_write
    outside_region = 11,    ///< bytes lie outside the region
    two_devices = 12,       ///< pieces of the frame lie in memory of several devices that the CPU cannot access
    wrong_wait = 13,        ///< a wait with an unknown condition, or with 10^9 or more in the nanoseconds of its time
    too_far_ahead = 14,     ///< a wait beyond the horizon
    wrong_doorbell = 15,    ///< the doorbell record claims more entries than the ring holds
    port_gone = 16,         ///< the device or its interface was removed
    link_down = 17,         ///< the interface has been down, or without a carrier, for too long
    file_failed = 18,       ///< the capture file cannot be written
    device_failed = 19,     ///< the device whose copy engine was needed has failed
    changed = 20,           ///< the entry was changed before it was done
    out_of_reach = 21,      ///< the CPU cannot access the memory, and no copy engine stages it
    bad_response = 22,      ///< the peer's response does not belong to its request
    lost_memory = 23,       ///< the memory of a WRITE with immediate was taken away while the data arrived
    receive_too_short = 24, ///< a SEND is longer than the receive entry
    remote_invalid = 25,    ///< the peer's NAK: invalid request
    remote_access = 26,     ///< the peer's NAK: remote access error
    remote_operation = 27,  ///< the peer's NAK: remote operational error, or an unknown NAK code
    no_answer = 28,         ///< no acknowledgment after retry_count retries
    not_ready = 29,         ///< the peer had no receive entry after rnr_retry retries
    refused_peer = 30,      ///< no entry failed: a request of the peer was refused, or its receive entry failed
    flushed = 31,           ///< an earlier entry failed, or the queue was stopped
    unreliable = 32,        ///< a READ, an atomic or a SEND with invalidate on UC; all but a SEND on UD
    message_too_long = 33,  ///< a SEND or WRITE of more than 2^31 bytes
    read_too_long = 34,     ///< a READ of more than 2^31 bytes
    misaligned_atomic = 35, ///< the remote address of an atomic is no multiple of 8
    misaligned_word = 36,   ///< the remote address is a multiple of 8, but the CPU address of the word is not
    wrong_atomic = 37,      ///< the local buffer of an atomic is not 8 bytes long
    unequal_copy = 38,      ///< source and destination of a copy differ in length
    no_remote_write = 39,   ///< the region or window lacks access::remote_write
    no_remote_read = 40,    ///< the region or window lacks access::remote_read
    no_remote_atomic = 41,  ///< the region or window lacks access::remote_atomic
    not_invalidated = 42,   ///< a SEND with invalidate named a key that cannot be invalidated, such as that of a region
    opcode_order = 43,      ///< a first, middle or last packet of a message in the wrong order
    packet_size = 44,       ///< the size of a packet is not what the path MTU requires
    message_length = 45,    ///< the length of a message is not what its first packet has announced
    queue_denies_write = 46,    ///< the queue does not give the peer access::remote_write
    queue_denies_read = 47,     ///< the queue does not give the peer access::remote_read
    queue_denies_atomic = 48,   ///< the queue does not give the peer access::remote_atomic
    too_many_reads = 49,        ///< the peer has more READs and atomics in flight than the queue takes
    read_lost = 50,             ///< the memory of a READ was taken away before all of it had been read
    completions_overrun = 51,   ///< no entry failed: a completion queue that fails its queues when full was full
    memory_gone = 52,           ///< the memory was unmapped, or its file truncated, while the region existed
    headers_cut = 53,           ///< a packet of the peer is shorter than its headers
    stray_payload = 54,         ///< a READ or an atomic of the peer with a payload
    unknown_file = 55,          ///< no file of the engine has that key; it may be the key of an earlier file
    file_ended = 56,            ///< the file was closed at the engine before the entry was done
    io_failed = 57,             ///< the system refused the read, write or sync; its errno is reported too
    not_a_window = 58,          ///< a bind or an invalidation names no memory window of this NIC
    wrong_window_key = 59,      ///< a valid window has another key than the entry names
    wrong_window_type = 60,     ///< a bind of the other type, or an invalidation of a window of type 1
    window_not_free = 61,       ///< a bind of a window of type 2 that is valid
    window_free = 62,           ///< the key of a window that is not bound, or under another key
    window_of_other_queue = 63, ///< a window of type 2 that another queue pair has bound
    window_domain = 64,         ///< window, region and queue pair of a bind are not all in one protection domain
    window_region = 65,         ///< a bind names no region of this NIC
    no_bind = 66,               ///< the region of a bind lacks access::bind
    window_zero_based = 67,     ///< the region of a bind is zero-based
    window_local_write = 68,    ///< a window that peers may change, and a region without access::local_write
    window_outside_region = 69, ///< strict windows: a bind beyond its region
    window_without_bytes = 70,  ///< a bind of 0 bytes of a window of type 2
    window_as_lkey = 71,        ///< an entry names its own memory by the key of a window
    window_atomic = 72,         ///< an atomic through a window that does not allow it
    wrong_umr_mask = 73,        ///< the flags or the mask of a UMR entry are those of no bind and no invalidation
    wrong_umr_field = 74,       ///< a UMR entry changes fields that no bind and no invalidation changes
    datagram_too_long = 75,     ///< a datagram (UD) of more than a path MTU
    wrong_source = 76,          ///< a datagram segment with a GID index that the device lacks, or of another IP version
    wrong_queue_key = 77,       ///< a datagram of a peer with another Q_Key than the queue pair
    staged_atomic = 78,         ///< an atomic on memory that the CPU cannot access
};

/// The name of the reason, here and in docs/formats.md ("unknown_key"); "unknown" for any other number. Any thread.
const char* to_string(refusal reason) noexcept;

/// A sentence for byte 54 of an error completion; "unknown reason" for an undefined number. Any thread.
const char* explain(std::uint8_t vendor_byte) noexcept;
inline const char* explain(refusal reason) noexcept
{
    return explain(static_cast<std::uint8_t>(reason));
}

} // namespace weftio
