// The names of reasons, as docs/formats.md lists them.
#include <array>

#include "core/refusal.hpp"

namespace weftio {

namespace {

constexpr std::array refusal_names{
    "none",
    "unknown_opcode",
    "wrong_index",
    "wrong_queue",
    "wrong_size",
    "wrong_segment",
    "no_payload",
    "frame_too_long",
    "unknown_key",
    "other_domain",
    "no_local_write",
    "outside_region",
    "two_devices",
    "wrong_wait",
    "too_far_ahead",
    "wrong_doorbell",
    "port_gone",
    "link_down",
    "file_failed",
    "device_failed",
    "changed",
    "out_of_reach",
    "bad_response",
    "lost_memory",
    "receive_too_short",
    "remote_invalid",
    "remote_access",
    "remote_operation",
    "no_answer",
    "not_ready",
    "refused_peer",
    "flushed",
    "unreliable",
    "message_too_long",
    "read_too_long",
    "misaligned_atomic",
    "misaligned_word",
    "wrong_atomic",
    "unequal_copy",
    "no_remote_write",
    "no_remote_read",
    "no_remote_atomic",
    "not_invalidated",
    "opcode_order",
    "packet_size",
    "message_length",
    "queue_denies_write",
    "queue_denies_read",
    "queue_denies_atomic",
    "too_many_reads",
    "read_lost",
    "completions_overrun",
    "memory_gone",
    "headers_cut",
    "stray_payload",
    "unknown_file",
    "file_ended",
    "io_failed",
    "not_a_window",
    "wrong_window_key",
    "wrong_window_type",
    "window_not_free",
    "window_free",
    "window_of_other_queue",
    "window_domain",
    "window_region",
    "no_bind",
    "window_zero_based",
    "window_local_write",
    "window_outside_region",
    "window_without_bytes",
    "window_as_lkey",
    "window_atomic",
    "wrong_umr_mask",
    "wrong_umr_field",
    "datagram_too_long",
    "wrong_source",
    "wrong_queue_key",
    "staged_atomic",
};
static_assert(refusal_names.size() == core::all_refusals, "each reason has a name, at its number");

} // namespace

const char* to_string(refusal reason) noexcept
{
    const auto number = static_cast<std::size_t>(reason);
    return number < refusal_names.size() ? refusal_names[number] : "unknown";
}

} // namespace weftio
