#include "nic/soft/work/refusal.hpp"

#include "weftio/device/cqe.h"

namespace weftio::nic::soft {

std::uint8_t syndrome_of(refusal reason) noexcept
{
    switch (reason) {
        case refusal::none: return WEFTIO_SYNDROME_NONE;
        case refusal::too_long:
        case refusal::receive_too_short: return WEFTIO_SYNDROME_LOCAL_LENGTH;
        case refusal::unknown_key:
        case refusal::other_domain:
        case refusal::no_right:
        case refusal::outside_region:
        case refusal::two_devices:
        case refusal::out_of_reach:
        case refusal::memory_gone: return WEFTIO_SYNDROME_LOCAL_PROTECTION;
        case refusal::bad_response: return WEFTIO_SYNDROME_BAD_RESPONSE;
        case refusal::lost_memory: return WEFTIO_SYNDROME_LOCAL_ACCESS;
        case refusal::remote_invalid: return WEFTIO_SYNDROME_REMOTE_INVALID;
        case refusal::remote_access: return WEFTIO_SYNDROME_REMOTE_ACCESS;
        case refusal::remote_operation: return WEFTIO_SYNDROME_REMOTE_OPERATION;
        case refusal::no_answer: return WEFTIO_SYNDROME_RETRIES_EXCEEDED;
        case refusal::not_ready: return WEFTIO_SYNDROME_NOT_READY_EXCEEDED;
        case refusal::port_gone:
        case refusal::link_down:
        case refusal::file_failed:
        case refusal::device_failed:
        case refusal::refused_peer:
        case refusal::flushed: return WEFTIO_SYNDROME_FLUSHED;
        default: return WEFTIO_SYNDROME_LOCAL_QP_OPERATION;
    }
}

const char* to_string(refusal reason) noexcept
{
    switch (reason) {
        case refusal::none: return "no error";
        case refusal::unknown_opcode: return "unknown opcode";
        case refusal::wrong_index:
            return "the entry carries another index: written to a wrong position, or committed before it was written";
        case refusal::wrong_queue: return "the entry carries another queue's number";
        case refusal::wrong_size:
            return "the entry's size does not fit its segments, or reaches beyond what was committed";
        case refusal::wrong_segment: return "a segment that this opcode does not take";
        case refusal::no_payload: return "a frame of no bytes";
        case refusal::too_long: return "the frame is longer than the port's MTU allows";
        case refusal::unknown_key:
            return "no memory region has that key, or none that this NIC was told of (memory_region::register_with)";
        case refusal::other_domain: return "the key's memory region is of another protection domain than the queue";
        case refusal::no_right: return "the key's memory region lacks access::local_write";
        case refusal::outside_region: return "the address is outside the key's memory region";
        case refusal::two_devices:
            return "pieces of the frame lie in memory of several devices, and one copy engine brings a frame to the "
                   "host";
        case refusal::wrong_wait: return "a wait with a condition or value that does not exist";
        case refusal::too_far_ahead: return "a wait beyond the queue's horizon";
        case refusal::wrong_doorbell: return "the doorbell record claims more entries than the ring holds";
        case refusal::port_gone: return "the port has gone: its device or its interface was removed";
        case refusal::link_down: return "the link is down";
        case refusal::file_failed: return "the capture file cannot be written";
        case refusal::device_failed:
            return "the device whose memory was to be copied, or sent from, has failed; restart the process";
        case refusal::changed: return "the entry was changed before it was done";
        case refusal::out_of_reach:
            return "the key's memory region is on a device whose memory the CPU does not see; name memory that it does";
        case refusal::bad_response: return "the peer's answer does not belong to its request";
        case refusal::lost_memory: return "the memory of a write with immediate was taken away while it arrived";
        case refusal::receive_too_short: return "the message is longer than the receive entry";
        case refusal::remote_invalid:
            return "the peer refuses the request: its queue does not allow the operation, or its length is wrong there";
        case refusal::remote_access:
            return "the peer refuses the memory: its key, range, rights or protection domain are wrong";
        case refusal::remote_operation: return "the peer cannot go on with the request";
        case refusal::no_answer: return "the peer has not acknowledged it, as often as the queue was to try";
        case refusal::not_ready: return "the peer had no receive entry, as often as the queue was to try";
        case refusal::refused_peer: return "a request of the peer was refused, which ended the connection";
        case refusal::flushed: return "flushed: an earlier entry failed";
        case refusal::unreliable:
            return "the queue pair is unreliable (UC), which has neither reads nor atomics; take "
                   "rdma_service::reliable at both ends";
        case refusal::memory_gone:
            return "the memory of the key's region was unmapped, or its file was truncated, while the region existed";
    }
    return "unknown";
}

} // namespace weftio::nic::soft
