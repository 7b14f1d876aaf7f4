#include "hooks/sites.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace weftio::hooks {

namespace {

/// What the instructions so far have changed, and how that is undone.
class changes {
 public:
    /// Returns false if that cannot be undone.
    bool add(const instruction& what)
    {
        switch (what.effect) {
            case effect::none: return true;
            case effect::push:
                pushed_ |= 1u << what.changed;
                undo_push(what.changed);
                return true;
            case effect::reserve: undo_reserve(what.reserved); return true;
            case effect::set: return ((pushed_ | scratch) >> what.changed & 1) != 0;
            case effect::other: return false;
        }
        return false;
    }
    const std::vector<std::uint8_t>& undo() const noexcept { return undo_; }

 private:
    static constexpr unsigned scratch = 1u << 0 | 1u << 10 | 1u << 11; ///< rax, r10, r11: no argument is there

    /// Its value comes back, also if it was set since: the first push of a register has the caller's.
    void undo_push(std::uint8_t pushed)
    {
        const auto pop = static_cast<std::uint8_t>(0x58 | (pushed & 7));
        put_first(pushed < 8 ? std::vector<std::uint8_t>{pop} : std::vector<std::uint8_t>{0x41, pop});
    }
    void undo_reserve(std::int32_t bytes)
    {
        std::vector<std::uint8_t> code{0x48, 0x8d, 0xa4, 0x24, 0, 0, 0, 0}; // lea rsp, [rsp + bytes]
        std::memcpy(&code[4], &bytes, sizeof bytes);
        put_first(code);
    }
    void put_first(const std::vector<std::uint8_t>& code) { undo_.insert(undo_.begin(), code.begin(), code.end()); }

    std::vector<std::uint8_t> undo_;
    unsigned pushed_ = 0;
};

/// The code around an address, as far as it is there.
class surroundings {
 public:
    explicit surroundings(std::uintptr_t at) : begin_(at - before)
    {
        const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
        ssize_t got = memory < 0 ? -1 : pread(memory, bytes_.data(), bytes_.size(), static_cast<off_t>(begin_));
        if (memory >= 0 && got <= 0) { // nothing is mapped before
            begin_ = at;
            got = pread(memory, bytes_.data(), bytes_.size(), static_cast<off_t>(begin_));
        }
        if (memory >= 0)
            close(memory);
        count_ = got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    /// Whether bytes there may be a branch to the address; also where they are none.
    bool lead_to(std::uintptr_t address) const
    {
        for (std::size_t at = 0; at + 6 <= count_; ++at) {
            const bool near = (bytes_[at] & 0xf0) == 0x70 || bytes_[at] == 0xeb || (bytes_[at] & 0xfc) == 0xe0;
            const bool far = bytes_[at] == 0xe9 || (bytes_[at] == 0x0f && (bytes_[at + 1] & 0xf0) == 0x80);
            if ((near && target<std::int8_t>(at + 1) == address) ||
                (far && target<std::int32_t>(at + (bytes_[at] == 0x0f ? 2 : 1)) == address))
                return true;
        }
        return count_ == 0;
    }

 private:
    static constexpr std::size_t before = 256;

    template <class Distance>
    std::uintptr_t target(std::size_t at) const
    {
        Distance distance{};
        std::memcpy(&distance, &bytes_[at], sizeof distance);
        return begin_ + at + sizeof distance + static_cast<std::uintptr_t>(static_cast<std::intptr_t>(distance));
    }

    std::uintptr_t begin_;
    std::array<std::uint8_t, 8192> bytes_{};
    std::size_t count_ = 0;
};

} // namespace

std::vector<site> find_sites(std::uintptr_t function)
{
    constexpr std::size_t most_bytes = 48;
    std::vector<site> found;
    changes before;
    const surroundings code(function);
    for (std::uintptr_t at = function; at < function + most_bytes;) {
        const instruction what = decode(reinterpret_cast<const std::uint8_t*>(at));
        if (what.bytes == 0)
            break;
        if (at == function || !code.lead_to(at))
            found.push_back({at, what.bytes, before.undo()});
        if (what.is_last || what.branch != branch::none || !before.add(what))
            break;
        at += what.bytes;
    }
    return found;
}

} // namespace weftio::hooks
