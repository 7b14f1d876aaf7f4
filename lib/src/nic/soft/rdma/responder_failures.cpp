#include "nic/soft/rdma/responder_failures.hpp"

#include <fmt/format.h>

namespace weftio::nic::soft {

namespace {

using roce::key_refusal;
using roce::responder_fault;

const char* name_of(net::roce_operation operation) noexcept
{
    switch (operation) {
        case net::roce_operation::send: return "SEND";
        case net::roce_operation::write: return "WRITE";
        case net::roce_operation::read_request: return "READ";
        case net::roce_operation::compare_swap: return "compare-and-swap";
        case net::roce_operation::fetch_add: return "fetch-and-add";
        default: return "request";
    }
}

const char* right_of(net::roce_operation operation) noexcept
{
    switch (operation) {
        case net::roce_operation::write: return "access::remote_write";
        case net::roce_operation::read_request: return "access::remote_read";
        case net::roce_operation::compare_swap:
        case net::roce_operation::fetch_add: return "access::remote_atomic";
        default: return "a right that no region has";
    }
}

std::string memory_words(const roce::refused_request& request)
{
    switch (request.key) {
        case key_refusal::unknown_key: return "no memory region of this port has that key";
        case key_refusal::other_domain: return "the key's memory region is of another protection domain than the queue";
        case key_refusal::no_right:
            if (request.operation == net::roce_operation::send)
                return "it was to invalidate the key, and those of memory regions are not invalidated";
            return fmt::format("the key's memory region lacks {}", right_of(request.operation));
        case key_refusal::outside_region: return "the bytes do not lie in the key's memory region";
        case key_refusal::out_of_reach:
            return "the CPU does not see the memory of the key's region, or the word does not lie there on a multiple "
                   "of 8";
        case key_refusal::memory_gone: return to_string(refusal::memory_gone);
        case key_refusal::none: break;
    }
    return "unknown";
}

std::string words_of(const roce::refused_request& request)
{
    switch (request.fault) {
        case responder_fault::opcode_order: return "its packet does not follow the one before it";
        case responder_fault::payload_size:
            return "the size of its packet is not what the path MTU allows; both ends must have the same";
        case responder_fault::message_length: return "its packets are more or fewer than its first one announced";
        case responder_fault::no_queue_right:
            return fmt::format("this queue does not give the peer {}", right_of(request.operation));
        case responder_fault::too_many_reads:
            return "the peer has more READs and atomics in flight than this queue takes";
        case responder_fault::misaligned: return "the address of its word is no multiple of 8";
        case responder_fault::remote_memory:
            return fmt::format("{} bytes at {:#x} with key {:#x}: {}", request.range.bytes, request.range.address,
                               request.range.key, memory_words(request));
        case responder_fault::send_too_long: return to_string(refusal::receive_too_short);
        case responder_fault::local_memory:
        case responder_fault::receive_record:
        case responder_fault::none: break;
    }
    return "unknown";
}

} // namespace

std::string explain(const responder_failure& failure)
{
    if (failure.request.fault == responder_fault::receive_record)
        return fmt::format("receive ring: {}", to_string(refusal::wrong_doorbell));
    if (failure.entry)
        return fmt::format("receive entry at position {} failed: {}", *failure.entry, to_string(failure.reason));
    return fmt::format("the peer's {} was refused: {}", name_of(failure.request.operation), words_of(failure.request));
}

std::uint8_t syndrome_of(const responder_failure& failure) noexcept
{
    if (failure.entry || failure.request.fault == responder_fault::receive_record)
        return syndrome_of(failure.reason);
    return failure.request.fault == responder_fault::remote_memory ? WEFTIO_SYNDROME_REMOTE_ACCESS
                                                                   : WEFTIO_SYNDROME_REMOTE_INVALID;
}

} // namespace weftio::nic::soft
