// What a reason becomes in a completion and on the wire.
#pragma once

#include <cstdint>

#include "weftio/refusal.hpp"

namespace weftio::core {

/// One more than the last reason.
inline constexpr std::uint8_t all_refusals = static_cast<std::uint8_t>(refusal::staged_atomic) + 1;

/// The syndrome of an entry that ends for this reason, as hardware would report it (docs/formats.md, "Completions").
std::uint8_t syndrome_of(refusal reason) noexcept;

/// Bytes 48 to 55 of a completion with an error, as a number: the reason in byte 54 (vendor), the syndrome in byte 55.
inline std::uint64_t error_word_of(refusal reason) noexcept
{
    return std::uint64_t{static_cast<std::uint8_t>(reason)} << 8 | syndrome_of(reason);
}

/// What a responder tells the peer: the syndrome of a NAK (IBTA 9.7.5.2.8).
inline constexpr std::uint8_t no_nak = 0, nak_invalid = 0x61, nak_access = 0x62, nak_operational = 0x63;

/// The NAK for a request that is refused for this reason; no_nak: no request is. An unknown key, say, is a key that the
/// peer has named.
std::uint8_t nak_of(refusal reason) noexcept;
/// The NAK for a request whose receive entry fails for this reason: the peer has not named that memory.
inline std::uint8_t nak_of_receive(refusal reason) noexcept
{
    return nak_of(reason) == nak_access ? nak_operational : nak_of(reason);
}
/// What a requester makes of a NAK: its entry ends for this reason. A code that no table has is an operational error.
refusal reason_of_nak(std::uint8_t nak) noexcept;

} // namespace weftio::core
