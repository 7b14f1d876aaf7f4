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
constexpr std::uint8_t by_window = WEFTIO_SYNDROME_WINDOW_BIND;

using enum refusal;

/// Everything that is known of a reason, by its number.
constexpr std::array<row, all_refusals> table{{
    {none, WEFTIO_SYNDROME_NONE, no_nak, "no error"},
    {unknown_opcode, by_operation, nak_invalid, "unknown opcode"},
    {wrong_index, by_operation, no_nak,
     "the entry has a wrong index: it was written to the wrong position, or committed before it was written"},
    {wrong_queue, by_operation, no_nak, "the entry has the number of another queue"},
    {wrong_size, by_operation, no_nak, "the entry's size does not match its segments, or exceeds what was committed"},
    {wrong_segment, by_operation, no_nak, "the entry has a segment that its opcode does not accept"},
    {no_payload, by_operation, no_nak, "the frame has 0 bytes"},
    {frame_too_long, by_length, no_nak, "the frame is longer than the port's MTU allows"},
    {unknown_key, by_protection, nak_access, "no memory region has that key at this NIC"},
    {other_domain, by_protection, nak_access,
     "the key's memory region and the queue are in different protection domains"},
    {no_local_write, by_protection, nak_access, "the key's memory region lacks access::local_write"},
    {outside_region, by_protection, nak_access, "the address range exceeds the key's memory region"},
    {two_devices, by_protection, no_nak,
     "the frame has segments on several devices, and one copy engine stages a frame; use memory of one device"},
    {wrong_wait, by_operation, no_nak, "the wait has an unknown condition or an invalid value"},
    {too_far_ahead, by_operation, no_nak, "the wait's time is beyond the queue's horizon"},
    {wrong_doorbell, by_operation, nak_operational, "the doorbell record claims more entries than the ring holds"},
    {port_gone, by_flush, no_nak, "the port is gone: its device or its interface was removed"},
    {link_down, by_flush, no_nak, "the link is down"},
    {file_failed, by_flush, no_nak, "the capture file cannot be written"},
    {device_failed, by_flush, nak_operational, "a copy to or from the device's memory failed; restart the process"},
    {changed, by_operation, no_nak, "the entry was changed before it completed"},
    {out_of_reach, by_protection, nak_access,
     "the CPU cannot access the key's memory region, and no copy engine stages it; use memory that the CPU can access"},
    {bad_response, WEFTIO_SYNDROME_BAD_RESPONSE, no_nak, "the peer's response does not match the request"},
    {lost_memory, WEFTIO_SYNDROME_LOCAL_ACCESS, nak_access,
     "the memory of a WRITE with immediate became invalid while the data arrived"},
    {receive_too_short, by_length, nak_invalid, "the message is longer than the receive entry"},
    {remote_invalid, by_invalid, no_nak,
     "the peer refused the request as invalid: its queue denies the operation, or the length, the format or the "
     "atomic's alignment is wrong"},
    {remote_access, by_access, no_nak,
     "the peer refused access to its memory: wrong key, range, rights or protection domain"},
    {remote_operation, by_operational, no_nak, "the peer could not complete the request (remote operational error)"},
    {no_answer, WEFTIO_SYNDROME_RETRIES_EXCEEDED, no_nak, "no acknowledgment after retry_count retries"},
    {not_ready, WEFTIO_SYNDROME_NOT_READY_EXCEEDED, no_nak, "the peer had no receive entry after rnr_retry retries"},
    {refused_peer, by_flush, no_nak, "the connection ended: a request of the peer was refused"},
    {flushed, by_flush, no_nak, "flushed: an earlier entry failed"},
    {unreliable, by_operation, no_nak,
     "an unreliable queue pair (UC) has no READs, no atomics and no SEND with invalidate, and one of datagrams (UD) "
     "has SENDs only; set rdma_service::reliable at both ends"},
    {message_too_long, by_length, nak_invalid, "the message exceeds 2^31 bytes; send it in several messages"},
    {read_too_long, by_length, nak_invalid, "the READ exceeds 2^31 bytes; split it into several READs"},
    {misaligned_atomic, by_operation, nak_invalid, "the remote address of the atomic is not a multiple of 8"},
    {misaligned_word, by_protection, nak_access,
     "the CPU address of the atomic's word is not a multiple of 8; register memory that starts at a multiple of 8"},
    {wrong_atomic, by_operation, no_nak, "the local buffer of the atomic is not 8 bytes long"},
    {unequal_copy, by_operation, no_nak, "source and destination of the copy differ in length"},
    {no_remote_write, by_access, nak_access, "the key's memory region or window lacks access::remote_write"},
    {no_remote_read, by_access, nak_access, "the key's memory region or window lacks access::remote_read"},
    {no_remote_atomic, by_access, nak_access, "the key's memory region or window lacks access::remote_atomic"},
    {not_invalidated, by_invalid, no_nak,
     "the peer cannot invalidate that key: only the key of a window of type 2 that this queue pair has bound"},
    {opcode_order, by_invalid, nak_invalid, "the packet's opcode does not follow the previous packet's"},
    {packet_size, by_invalid, nak_invalid,
     "the packet's size does not match the path MTU; set the same path MTU at both ends"},
    {message_length, by_invalid, nak_invalid, "the message's length differs from what its first packet announced"},
    {queue_denies_write, by_invalid, nak_invalid, "the queue's rights lack access::remote_write"},
    {queue_denies_read, by_invalid, nak_invalid, "the queue's rights lack access::remote_read"},
    {queue_denies_atomic, by_invalid, nak_invalid, "the queue's rights lack access::remote_atomic"},
    {too_many_reads, by_invalid, nak_invalid, "the peer has more READs and atomics in flight than this queue accepts"},
    {read_lost, by_operational, nak_operational, "the memory of a READ became invalid before it was read completely"},
    {completions_overrun, WEFTIO_SYNDROME_FLUSHED, no_nak,
     "the completion queue was full; use more entries, consume faster, or set completion_overrun::hold"},
    {memory_gone, by_protection, nak_access,
     "the memory of the key's region cannot be accessed any more: it was unmapped or protected (mprotect), or its file "
     "was truncated"},
    {headers_cut, by_invalid, nak_invalid, "the packet is too short for its opcode's headers or its padding"},
    {stray_payload, by_invalid, nak_invalid, "the packet has a payload, and its operation takes none"},
    {unknown_file, by_access, no_nak, "no file of this engine has that key; the file may be closed (file::key)"},
    {file_ended, by_access, no_nak, "the file was closed before the transfer completed"},
    {io_failed, by_operational, no_nak, "the read, write or sync of the file failed; see its errno"},
    {not_a_window, by_window, no_nak,
     "no memory window of this port has that key's index: it is the key of a region, or the window was destroyed"},
    {wrong_window_key, by_window, nak_access, "the window is valid under another key: name the key of its last bind"},
    {wrong_window_type, by_window, nak_access,
     "the window has the other type: bind it as the type it was made as; only type 2 can be invalidated"},
    {window_not_free, by_window, no_nak, "the window of type 2 is bound; invalidate it first"},
    {window_free, by_window, nak_access,
     "the memory window is not bound under that key: it is free, or has another key now"},
    {window_of_other_queue, by_window, nak_access,
     "another queue pair has bound the window of type 2, and only that one and its peer may use it"},
    {window_domain, by_window, nak_access,
     "the queue pair, the window and the region of a bind are in different protection domains; make them in one"},
    {window_region, by_window, no_nak, "the bind's region key is unknown at this port"},
    {no_bind, by_window, no_nak, "the region lacks access::bind, so no window can be bound to it"},
    {window_zero_based, by_window, no_nak,
     "the region is zero-based (its iova is 0), and windows cannot be bound to such a region"},
    {window_local_write, by_window, no_nak,
     "a window with remote_write or remote_atomic needs a region with access::local_write"},
    {window_outside_region, by_window, no_nak, "the bytes of the bind exceed the region"},
    {window_without_bytes, by_window, no_nak, "a window of type 2 cannot be bound to 0 bytes; invalidate it instead"},
    {window_as_lkey, by_protection, nak_access,
     "the key is that of a memory window, which only peers may use; name local memory by the region's key"},
    {window_atomic, by_access, nak_access,
     "the memory window does not allow atomics: bind it with access::remote_atomic, at an rdma_device with "
     "strict_windows"},
    {wrong_umr_mask, by_window, no_nak,
     "the UMR entry's flags and mask are those of no bind and no invalidation (docs/formats.md, Windows)"},
    {wrong_umr_field, by_window, no_nak,
     "a field of the UMR entry has a value that no bind and no invalidation has (docs/formats.md, Windows)"},
    {datagram_too_long, by_length, no_nak,
     "a datagram (UD) holds one path MTU at most (rdma_device::most_path_mtu); send less, or several"},
    {wrong_source, by_operation, no_nak,
     "the datagram's GID index names no address of the device, or one of another IP version than the destination"},
    {wrong_queue_key, by_invalid, no_nak,
     "the datagram has another Q_Key than the queue pair; set the same at both ends"},
    {staged_atomic, by_access, nak_access,
     "the word of the atomic lies in memory that the CPU cannot access, such as a GPU's, where copies take the place "
     "of stores; use memory that the CPU can access for words of atomics"},
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
