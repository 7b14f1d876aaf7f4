#include "core/refusal.hpp"

#include <array>

#include "weftio/device/cqe.h"

namespace weftio {

namespace core::refusals {

namespace {

struct row {
    refusal reason;
    std::uint8_t syndrome, nak;
    const char* sentence;
};

constexpr std::uint8_t by_length = WEFTIO_SYNDROME_LOCAL_LENGTH, by_operation = WEFTIO_SYNDROME_LOCAL_QP_OPERATION,
                       by_protection = WEFTIO_SYNDROME_LOCAL_PROTECTION, by_flush = WEFTIO_SYNDROME_FLUSHED;
/// Of requests of a peer's: what its own entry gets.
constexpr std::uint8_t by_invalid = WEFTIO_SYNDROME_REMOTE_INVALID, by_access = WEFTIO_SYNDROME_REMOTE_ACCESS,
                       by_operational = WEFTIO_SYNDROME_REMOTE_OPERATION;

using enum refusal;

/// Everything that is known of a reason, by its number.
constexpr std::array<row, all_refusals> table{{
    {none, WEFTIO_SYNDROME_NONE, no_nak, "no error"},
    {unknown_opcode, by_operation, nak_invalid, "unknown opcode"},
    {wrong_index, by_operation, no_nak,
     "the entry carries another index: written to a wrong position, or committed before it was written"},
    {wrong_queue, by_operation, no_nak, "the entry carries another queue's number"},
    {wrong_size, by_operation, no_nak,
     "the entry's size does not fit its segments, or reaches beyond what was committed"},
    {wrong_segment, by_operation, no_nak, "a segment that this opcode does not take"},
    {no_payload, by_operation, no_nak, "a frame of no bytes"},
    {frame_too_long, by_length, no_nak, "the frame is longer than the port's MTU allows"},
    {unknown_key, by_protection, nak_access,
     "no memory region has that key, or none that this NIC was told of (memory_region::register_with)"},
    {other_domain, by_protection, nak_access, "the key's memory region is of another protection domain than the queue"},
    {no_local_write, by_protection, nak_access, "the key's memory region lacks access::local_write"},
    {outside_region, by_protection, nak_access, "bytes lie outside the key's memory region"},
    {two_devices, by_protection, no_nak,
     "pieces of the frame lie in memory of several devices, and one copy engine brings a frame to the host"},
    {wrong_wait, by_operation, no_nak, "a wait with a condition or value that does not exist"},
    {too_far_ahead, by_operation, no_nak, "a wait beyond the queue's horizon"},
    {wrong_doorbell, by_operation, nak_operational, "the doorbell record claims more entries than the ring holds"},
    {port_gone, by_flush, no_nak, "the port has gone: its device or its interface was removed"},
    {link_down, by_flush, no_nak, "the link is down"},
    {file_failed, by_flush, no_nak, "the capture file cannot be written"},
    {device_failed, by_flush, no_nak,
     "the device whose memory was to be copied, or sent from, has failed; restart the process"},
    {changed, by_operation, no_nak, "the entry was changed before it was done"},
    {out_of_reach, by_protection, nak_access,
     "the key's memory region is on a device whose memory the CPU does not see; name memory that it does"},
    {bad_response, WEFTIO_SYNDROME_BAD_RESPONSE, no_nak, "the peer's answer does not belong to its request"},
    {lost_memory, WEFTIO_SYNDROME_LOCAL_ACCESS, nak_access,
     "the memory of a write with immediate was taken away while it arrived"},
    {receive_too_short, by_length, nak_invalid, "the message is longer than the receive entry"},
    {remote_invalid, by_invalid, no_nak,
     "the peer refuses the request: its queue does not allow the operation, or its length, its form or the place of an "
     "atomic is wrong there"},
    {remote_access, by_access, no_nak,
     "the peer refuses the memory: its key, range, rights or protection domain are wrong"},
    {remote_operation, by_operational, no_nak, "the peer cannot go on with the request"},
    {no_answer, WEFTIO_SYNDROME_RETRIES_EXCEEDED, no_nak,
     "the peer has not acknowledged it, as often as the queue was to try"},
    {not_ready, WEFTIO_SYNDROME_NOT_READY_EXCEEDED, no_nak,
     "the peer had no receive entry, as often as the queue was to try"},
    {refused_peer, by_flush, no_nak, "a request of the peer was refused, which ended the connection"},
    {flushed, by_flush, no_nak, "flushed: an earlier entry failed"},
    {unreliable, by_operation, no_nak,
     "the queue pair is unreliable (UC), which has neither reads nor atomics; take rdma_service::reliable at both "
     "ends"},
    {message_too_long, by_length, nak_invalid, "the message is longer than 2^31 bytes, which no message is"},
    {read_too_long, by_length, nak_invalid, "the READ asks for more than 2^31 bytes; ask for them in several"},
    {misaligned_atomic, by_operation, nak_invalid,
     "the address of an atomic's word in the peer's memory is no multiple of 8"},
    {misaligned_word, by_protection, nak_access,
     "an atomic's word does not lie on a multiple of 8 in the memory of the CPU; register memory that begins on one"},
    {wrong_atomic, by_operation, no_nak,
     "an atomic returns 8 bytes, and the memory that the entry has for them is not as long"},
    {unequal_copy, by_operation, no_nak, "source and destination of the copy differ in length"},
    {no_remote_write, by_access, nak_access, "the key's memory region lacks access::remote_write"},
    {no_remote_read, by_access, nak_access, "the key's memory region lacks access::remote_read"},
    {no_remote_atomic, by_access, nak_access, "the key's memory region lacks access::remote_atomic"},
    {not_invalidated, by_access, nak_access, "keys of memory regions are not invalidated; a key ends with its region"},
    {opcode_order, by_invalid, nak_invalid, "its packet does not follow the one before it"},
    {packet_size, by_invalid, nak_invalid,
     "the size of its packet is not what the path MTU allows; both ends must have the same"},
    {message_length, by_invalid, nak_invalid, "its packets are more or fewer than its first one announced"},
    {queue_denies_write, by_invalid, nak_invalid, "this queue does not give the peer access::remote_write"},
    {queue_denies_read, by_invalid, nak_invalid, "this queue does not give the peer access::remote_read"},
    {queue_denies_atomic, by_invalid, nak_invalid, "this queue does not give the peer access::remote_atomic"},
    {too_many_reads, by_invalid, nak_invalid, "the peer has more READs and atomics in flight than this queue takes"},
    {read_lost, by_operational, nak_operational, "the memory of a READ was taken away before all of it had been read"},
    {completions_overrun, WEFTIO_SYNDROME_FLUSHED, no_nak,
     "its completion queue was full; make that deeper, consume faster, or take completion_overrun::hold"},
    {memory_gone, by_protection, nak_access,
     "the memory of the key's region was unmapped, or its file was truncated, while the region existed"},
    {headers_cut, by_invalid, nak_invalid, "its packet is too short for the headers of its opcode, or for its pad"},
    {stray_payload, by_invalid, nak_invalid, "its packet has a payload, and its operation takes none"},
    {unknown_file, by_access, no_nak, "no file of this engine has that key, or it has ended (file::key)"},
    {file_ended, by_access, no_nak, "the file ended at its engine before all bytes were transferred"},
    {io_failed, by_operational, no_nak, "the system refused the read, write or sync of the file"},
}};

constexpr bool rows_stand_at_their_numbers()
{
    for (std::size_t at = 0; at < table.size(); ++at)
        if (static_cast<std::size_t>(table[at].reason) != at || table[at].sentence == nullptr)
            return false;
    return true;
}
static_assert(rows_stand_at_their_numbers());

const row& row_of(refusal reason) noexcept
{
    return table[static_cast<std::size_t>(reason)];
}

} // namespace

} // namespace core::refusals

const char* explain(std::uint8_t vendor_byte) noexcept
{
    using core::refusals::table;
    return vendor_byte < table.size() ? table[vendor_byte].sentence : "unknown reason";
}

std::uint8_t core::syndrome_of(refusal reason) noexcept
{
    return refusals::row_of(reason).syndrome;
}

std::uint8_t core::nak_of(refusal reason) noexcept
{
    return refusals::row_of(reason).nak;
}

refusal core::reason_of_nak(std::uint8_t nak) noexcept
{
    switch (nak) {
        case nak_invalid: return refusal::remote_invalid;
        case nak_access: return refusal::remote_access;
        default: return refusal::remote_operation;
    }
}

} // namespace weftio
