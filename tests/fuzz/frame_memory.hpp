// Guarded memory for a frame of a fuzzer, in which every wrong access is detected.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "guarded.hpp"

namespace weftio::fuzz {

/// Memory for a frame; the NIC's mapping is read-only.
class frame_memory {
 public:
    std::span<const std::uint8_t> against_the_end(std::span<const std::uint8_t> frame)
    {
        const std::size_t at = memory_.bytes() - frame.size();
        std::copy(frame.begin(), frame.end(), kernel() + at);
        return {nic() + at, frame.size()};
    }
    std::span<const std::uint8_t> against_the_begin(std::span<const std::uint8_t> frame)
    {
        std::copy(frame.begin(), frame.end(), kernel());
        return {nic(), frame.size()};
    }
    std::span<std::uint8_t> to_write(std::span<const std::uint8_t> frame)
    {
        against_the_end(frame);
        return {kernel() + memory_.bytes() - frame.size(), frame.size()};
    }

 private:
    std::uint8_t* kernel() { return reinterpret_cast<std::uint8_t*>(memory_.kernel()); }
    const std::uint8_t* nic() { return reinterpret_cast<const std::uint8_t*>(memory_.nic()); }

    guarded memory_{guarded::page};
};

} // namespace weftio::fuzz
