// Why an entry, or a request of a peer's, was refused.
#pragma once

#include <cstdint>

namespace weftio {

/// Why the NIC refuses an entry or a request of a peer's, or cannot do what it says: byte 54 of an error completion of
/// the software NIC, finer than the syndrome in byte 55 (docs/formats.md, "Completions"). Numbers stay as they are.
enum class refusal : std::uint8_t {
    none = 0,
    unknown_opcode = 1,
    wrong_index = 2, ///< the entry carries another index: it was written to the wrong position, or not written
    wrong_queue = 3,
    wrong_size = 4,     ///< the size does not fit the segments
    wrong_segment = 5,  ///< a segment that this opcode does not take
    no_payload = 6,     ///< a frame of no bytes
    frame_too_long = 7, ///< longer than the port's MTU allows
    unknown_key = 8,    ///< no region has that key; it may be that of an earlier region
    other_domain = 9,   ///< the region of the key is of another protection domain than the queue
    no_local_write = 10,
    outside_region = 11,
    two_devices = 12,    ///< pieces of the frame lie in memory of several devices that the CPU does not see
    wrong_wait = 13,     ///< unknown condition, or 1,000,000,000 nanoseconds or more in the lower half
    too_far_ahead = 14,  ///< waits beyond the horizon
    wrong_doorbell = 15, ///< the record claims more entries than the ring holds
    port_gone = 16,      ///< the device or its interface was removed
    link_down = 17,      ///< the interface has been down, or without a carrier, for too long
    file_failed = 18,    ///< the capture file cannot be written
    device_failed = 19,  ///< the device whose copy engine was to copy has failed
    changed = 20,        ///< the entry is not the one that was begun
    out_of_reach = 21,   ///< the CPU does not see the memory, and nobody stages it
    bad_response = 22,
    lost_memory = 23,       ///< of a write with immediate
    receive_too_short = 24, ///< a SEND is longer than the receive entry
    remote_invalid = 25,    ///< the peer's NAK: invalid request
    remote_access = 26,     ///< the peer's NAK: remote access error
    remote_operation = 27,  ///< the peer's NAK: remote operational error, or one of no known code
    no_answer = 28,         ///< retry_count times
    not_ready = 29,         ///< rnr_retry times
    refused_peer = 30,      ///< no entry: what the peer asked for was refused, or its receive entry failed
    flushed = 31,           ///< an earlier entry failed, or the queue was stopped
    unreliable = 32,        ///< a READ or an atomic of a queue pair that has no answers
    message_too_long = 33,  ///< a SEND or WRITE of more than 2^31 bytes
    read_too_long = 34,     ///< a READ of more than 2^31 bytes
    misaligned_atomic = 35, ///< the address that names the word is no multiple of 8
    misaligned_word = 36,   ///< the address does, and the word lies on no multiple of 8 in the CPU's memory
    wrong_atomic = 37,      ///< the local memory of an atomic has other than 8 bytes
    unequal_copy = 38,      ///< source and destination of a copy differ in length
    no_remote_write = 39,
    no_remote_read = 40,
    no_remote_atomic = 41,
    not_invalidated = 42, ///< a SEND was to invalidate the key of a region
    opcode_order = 43,    ///< a message began, went on or ended at the wrong moment
    packet_size = 44,     ///< not what the path MTU allows
    message_length = 45,  ///< not what the first packet has announced
    queue_denies_write = 46,
    queue_denies_read = 47,
    queue_denies_atomic = 48,
    too_many_reads = 49,      ///< of the peer, without an answer
    read_lost = 50,           ///< the memory of a READ was taken away before all of it had been read
    completions_overrun = 51, ///< no entry: a completion queue was full that fails its queues then
    memory_gone = 52,         ///< it was unmapped, or its file truncated, while the region existed
    headers_cut = 53,         ///< a packet of the peer's is shorter than its headers
    stray_payload = 54,       ///< a READ or an atomic of the peer's with a payload
    unknown_file = 55,        ///< no file has that key at the engine; it may be that of an earlier file
    file_ended = 56,          ///< the file ended at the engine before the entry was done
    io_failed = 57,           ///< the system refused the read, write or sync: the errno is told beside
};

/// Its name here and in docs/formats.md: "unknown_key"; "unknown" for a number that is none. Any thread.
const char* to_string(refusal reason) noexcept;

/// A sentence for byte 54 of an error completion; "unknown reason" for a number that is none. Any thread.
const char* explain(std::uint8_t vendor_byte) noexcept;
inline const char* explain(refusal reason) noexcept
{
    return explain(static_cast<std::uint8_t>(reason));
}

} // namespace weftio
