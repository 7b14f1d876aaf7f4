// The frame that is sent.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "pacing/pacing.kernel.h"

namespace weftio::bench {

/// A broadcast frame of the local experimental EtherType 0x88b5 that contains its sequence number.
inline std::array<std::uint8_t, FRAME_BYTES> make_frame(const std::array<std::uint8_t, 6>& source,
                                                        std::uint32_t sequence)
{
    std::array<std::uint8_t, FRAME_BYTES> frame{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    std::copy(source.begin(), source.end(), frame.begin() + 6);
    frame[12] = 0x88;
    frame[13] = 0xb5;
    std::memcpy(&frame[FRAME_SEQUENCE_AT], &sequence, sizeof sequence);
    return frame;
}

} // namespace weftio::bench
