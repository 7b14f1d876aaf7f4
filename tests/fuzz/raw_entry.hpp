// Send entries that are valid except for the fields that the input changes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "weftio/device/cqe.h"
#include "weftio/device/wqe.h"

namespace weftio::fuzz {

/// The input as numbers; zeros after its end.
class numbers {
 public:
    numbers(const std::uint8_t* data, std::size_t bytes) : at_(data), left_(bytes) {}

    bool empty() const noexcept { return left_ == 0; }
    template <class Number>
    Number next() noexcept
    {
        Number number = 0;
        std::size_t count = std::min(left_, sizeof number);
        std::memcpy(&number, at_, count);
        at_ += count;
        left_ -= count;
        return number;
    }
    std::uint8_t byte() noexcept { return next<std::uint8_t>(); }
    std::uint16_t half() noexcept { return next<std::uint16_t>(); }
    std::uint32_t word() noexcept { return next<std::uint32_t>(); }

 private:
    const std::uint8_t* at_;
    std::size_t left_;
};

/// Key and address of a region, for entries.
struct named_region {
    std::uint32_t key = 0;
    std::uint64_t base = 0, bytes = 0;
};

/// Whom an entry of a datagram names.
struct named_peer {
    std::uint32_t queue_key = 0, queue = 0, gid_index = 0;
    std::array<std::uint8_t, 6> mac{};
    std::array<std::uint8_t, 16> gid{};
};

/// An entry under construction, in segments of four words.
struct raw_entry {
    static constexpr std::uint32_t most_segments = 60;

    std::array<std::uint32_t, most_segments * 4> words{};
    std::uint32_t segments = 1;
    std::uint32_t last = 0; ///< segment of the last piece

    std::uint32_t blocks() const noexcept { return (segments + 3) / 4; }
    std::uint32_t& word(std::uint32_t segment, std::uint32_t at) noexcept { return words[segment * 4 + at]; }

    void control(std::uint32_t opcode, std::uint32_t index, std::uint32_t queue, std::uint8_t completion) noexcept
    {
        words[0] = weftio_swap32((opcode & 0xff00u) << 16 | (index & 0xffffu) << 8 | (opcode & 0xffu));
        words[1] = weftio_swap32(queue << 8 | segments);
        words[2] = std::uint32_t{completion} << 24;
    }
    void ethernet(std::uint32_t inlined, std::uint8_t cs_flags) noexcept
    {
        word(1, 1) = cs_flags;
        word(1, 3) = weftio_swap32(inlined << 16);
        segments = 2 + (inlined > 2 ? (inlined - 2 + 15) / 16 : 0);
    }
    void pointer(std::uint32_t count, std::uint32_t key, std::uint64_t address) noexcept
    {
        last = segments++;
        word(last, 0) = weftio_swap32(count);
        word(last, 1) = weftio_swap32(key);
        word(last, 2) = weftio_swap32(static_cast<std::uint32_t>(address >> 32));
        word(last, 3) = weftio_swap32(static_cast<std::uint32_t>(address));
    }
    void inlined(std::uint32_t count, std::uint32_t fill) noexcept
    {
        last = segments;
        segments += (count + 4 + 15) / 16;
        word(last, 0) = weftio_swap32(WEFTIO_INLINE_SEGMENT | count);
        std::memset(&word(last, 1), static_cast<int>(fill & 0xff), count);
    }
    /// The three segments that name the peer of a datagram.
    void datagram(const named_peer& to) noexcept
    {
        word(1, 0) = weftio_swap32(to.queue_key);
        word(1, 2) = weftio_swap32(WEFTIO_DATAGRAM_EXTENDED | to.queue);
        std::memcpy(&word(2, 1), to.mac.data(), to.mac.size());
        word(2, 3) = weftio_swap32(to.gid_index << 20);
        std::memcpy(&word(3, 0), to.gid.data(), to.gid.size());
        segments = 4;
    }
    void wait(std::uint64_t value) noexcept
    {
        word(1, 0) = weftio_swap32(WEFTIO_WAIT_CYCLIC_SMALLER);
        word(2, 0) = weftio_swap32(static_cast<std::uint32_t>(value >> 32));
        word(2, 1) = weftio_swap32(static_cast<std::uint32_t>(value));
        segments = 3;
    }

    /// A bind of a window. @param rights  WEFTIO_MKEY_*  @param memory  which bytes
    void bind(bool type_2, std::uint8_t variant, std::uint32_t rights, std::uint32_t queue,
              const named_region& memory) noexcept
    {
        umr(type_2 ? WEFTIO_UMR_BIND_TYPE_2 : WEFTIO_UMR_BIND_TYPE_1,
            WEFTIO_UMR_MASK_RIGHTS | (type_2 ? WEFTIO_UMR_MASK_BIND_TYPE_2 : WEFTIO_UMR_MASK_BIND_TYPE_1));
        word(1, 1) = weftio_swap32(4u << 16);
        word(4, 0) = rights << 16;
        word(4, 1) = weftio_swap32((type_2 ? queue : WEFTIO_MKEY_ANY_QUEUE) << 8 | variant);
        word(5, 0) = weftio_swap32(static_cast<std::uint32_t>(memory.base >> 32));
        word(5, 1) = weftio_swap32(static_cast<std::uint32_t>(memory.base));
        word(5, 3) = weftio_swap32(static_cast<std::uint32_t>(memory.bytes));
        segments = 8;
        pointer(static_cast<std::uint32_t>(memory.bytes), memory.key, memory.base);
        segments = 12;
    }
    /// An invalidation, or what frees a window of type 1.
    void free_window(bool type_2, std::uint8_t variant, std::uint32_t queue) noexcept
    {
        umr(type_2 ? WEFTIO_UMR_INVALIDATE : WEFTIO_UMR_BIND_TYPE_1,
            type_2 ? WEFTIO_UMR_MASK_INVALIDATE : WEFTIO_UMR_MASK_UNBIND);
        word(4, 0) = WEFTIO_MKEY_FREE;
        word(4, 1) = weftio_swap32((type_2 ? queue : WEFTIO_MKEY_ANY_QUEUE) << 8 | variant);
        last = 4;
        segments = 8;
    }
    void umr(std::uint32_t flags, std::uint32_t mask) noexcept
    {
        word(1, 0) = flags;
        word(1, 3) = weftio_swap32(mask);
    }

    /// Changes one field of half of the entries.
    void mutate(numbers& in) noexcept
    {
        const std::uint32_t kind = in.byte() & 15;
        auto moved = [&](std::uint32_t& field) {
            field =
                weftio_swap32(weftio_swap32(field) + static_cast<std::uint32_t>(static_cast<std::int8_t>(in.byte())));
        };
        switch (kind) {
            case 8: words[0] ^= weftio_swap32(in.byte()); break;                      // opcode
            case 9: words[0] ^= weftio_swap32(std::uint32_t{in.half()} << 8); break;  // index
            case 10: words[1] ^= weftio_swap32(std::uint32_t{in.byte()} << 8); break; // queue
            case 11: words[1] ^= weftio_swap32(in.byte()); break;                     // segments
            case 12: moved(word(last, 1)); break;                                     // key, or an inline byte
            case 13: moved(word(last, 3)); break; // address, or an unused word of a wait
            case 14: moved(word(last, 0)); break; // count, inline or not, or an opcode
            case 15: {                            // anything else
                std::uint32_t at = in.byte() % (segments * 4);
                words[at] ^= in.word();
                break;
            }
            default: break;
        }
    }
};

} // namespace weftio::fuzz
