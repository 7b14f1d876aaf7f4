// A jump at the entry of a function of another library: whoever calls it, by whatever pointer, comes to us.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hooks/sites.hpp"

namespace weftio::hooks {

/// Only bytes of one instruction change, at once: a thread that has executed it already, or was preempted anywhere in
/// the function, finds every other byte as it was. It is the first instruction that has the 5 bytes of a jump. If those
/// before it have changed registers or the stack, what the jump leads to undoes that first. Where there is no such
/// instruction, bytes of the next one are read as a part of the jump's distance: it leads to a place that they
/// determine. Another library may put a jump of its own over this one.
///
/// x86-64 only. What was written elsewhere stays for ever: a thread may be in it.
///
/// - Threads: one at a time; others may call the function meanwhile.
class entry_jump {
 public:
    /// Changes nothing yet.
    /// @param name  of the function, for error texts  @param to  a function of the same type
    /// @throws weftio::error errc::not_supported the processor, an instruction, or nothing is free where a jump could
    ///         lead; errc::permission_denied no executable memory is to be had
    entry_jump(const char* name, void* function, void* to);
    entry_jump(const entry_jump&) = delete;
    entry_jump& operator=(const entry_jump&) = delete;

    /// From its return on, calls come to `to`.
    /// @throws weftio::error errc::permission_denied code may not be changed; errc::in_use somebody else has changed it
    ///         since the constructor
    void put();
    /// Ends that. Calls that have come to `to` may not have ended. Returns false, and changes nothing, if somebody else
    /// has put a jump there since, which leads to `to` in the end.
    bool remove() noexcept;
    /// A function that does what the function does without the jump. Valid for ever.
    void* original() const noexcept { return original_; }
    void* function() const noexcept { return reinterpret_cast<void*>(entry_); }

 private:
    static constexpr std::size_t jump_bytes = 5, word_bytes = 8, line_bytes = 64;
    using code_bytes = std::array<std::uint8_t, jump_bytes>;

    std::uint8_t* choose_site();
    std::size_t changeable() const noexcept;
    std::uint8_t* take_target(std::size_t free_bytes) const;
    void write_target(std::uint8_t* target, void* to) const;
    std::uint8_t* make_original() const;
    void write(std::uint8_t* to, std::span<const std::uint8_t> code) const;
    [[noreturn]] void refuse_addresses() const;
    bool exchange(const code_bytes& expected, const code_bytes& wanted) noexcept;
    bool exchange_in_line(const code_bytes& expected, const code_bytes& wanted) const noexcept;
    bool allow_writing(bool allow) const noexcept;

    const char* const name_;
    const std::uintptr_t entry_;
    site site_{};                  ///< where the jump is
    code_bytes before_{}, jump_{}; ///< there
    void* original_ = nullptr;
};

} // namespace weftio::hooks
