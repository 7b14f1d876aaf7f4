#include "nic/soft/rdma/responder_failures.hpp"

#include <fmt/format.h>

namespace weftio::nic::soft {

namespace {

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

std::string words_of(const roce::refused_request& request)
{
    if (!request.range)
        return explain(request.reason);
    return fmt::format("{} bytes at {:#x} with key {:#x}: {}", request.range->bytes, request.range->address,
                       request.range->key, explain(request.reason));
}

} // namespace

std::string explain(const responder_failure& failure)
{
    if (failure.request.reason == refusal::wrong_doorbell)
        return fmt::format("receive ring: {}", explain(failure.request.reason));
    if (failure.request.invalidates)
        return fmt::format("the peer's SEND, which invalidates key {:#x}, was refused: {}",
                           *failure.request.invalidates, explain(failure.request.reason));
    if (failure.entry)
        return fmt::format("receive entry at position {} failed: {}", *failure.entry, explain(failure.reason));
    return fmt::format("the peer's {} was refused: {}", name_of(failure.request.operation), words_of(failure.request));
}

std::uint8_t syndrome_of(const responder_failure& failure) noexcept
{
    const refusal reason = failure.request.reason;
    if (failure.entry)
        return core::syndrome_of(failure.reason);
    if (reason == refusal::wrong_doorbell)
        return core::syndrome_of(reason);
    return core::syndrome_of(core::reason_of_nak(core::nak_of(reason)));
}

} // namespace weftio::nic::soft
