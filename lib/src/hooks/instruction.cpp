#include "hooks/instruction.hpp"

#include <cstring>

namespace weftio::hooks {

namespace {

/// What follows an opcode. `group3` has an immediate only for TEST, `group5` is refused for calls.
enum class form : std::uint8_t {
    unknown,
    alone,
    modrm,
    modrm8,
    modrm32,
    immediate8,
    immediate32,
    move,
    group3,
    group5
};

constexpr bool is_arithmetic(std::uint8_t opcode) noexcept
{
    return opcode < 0x40 && (opcode & 7) < 4;
}

constexpr form form_of(std::uint8_t opcode) noexcept
{
    if (is_arithmetic(opcode) || (opcode >= 0x84 && opcode <= 0x8b) || opcode == 0x8d || opcode == 0x63 ||
        opcode == 0xd1 || opcode == 0xd3)
        return form::modrm;
    if (opcode >= 0x50 && opcode <= 0x5f)
        return form::alone; // push, pop
    if (opcode >= 0xb8 && opcode <= 0xbf)
        return form::move;
    switch (opcode) {
        case 0x90:
        case 0xc3: return form::alone; // nop, ret
        case 0x80:
        case 0x83:
        case 0xc0:
        case 0xc1:
        case 0xc6:
        case 0x6b: return form::modrm8;
        case 0x81:
        case 0xc7:
        case 0x69: return form::modrm32;
        case 0x6a: return form::immediate8;
        case 0x68:
        case 0x3d:
        case 0xa9: return form::immediate32;
        case 0xf6:
        case 0xf7: return form::group3;
        case 0xff: return form::group5;
        default: return form::unknown;
    }
}

/// Of two bytes, 0x0f and this one.
constexpr form form_of_second(std::uint8_t opcode) noexcept
{
    const bool moves = opcode == 0x10 || opcode == 0x11 || opcode == 0x28 || opcode == 0x29 || opcode == 0x57 ||
                       opcode == 0x6e || opcode == 0x6f || opcode == 0x7e || opcode == 0x7f || opcode == 0xef;
    const bool widens = opcode == 0xb6 || opcode == 0xb7 || opcode == 0xbe || opcode == 0xbf || opcode == 0xaf;
    const bool hints = opcode == 0x1e || opcode == 0x1f || opcode == 0x18; // endbr64, long nops, prefetches
    const bool by_condition = (opcode >= 0x40 && opcode <= 0x4f) || (opcode >= 0x90 && opcode <= 0x9f);
    return moves || widens || hints || by_condition ? form::modrm : form::unknown;
}

constexpr std::uint8_t stack_pointer = 4;

/// Reads prefixes, opcode and operands in order.
class reader {
 public:
    explicit reader(const std::uint8_t* code) noexcept : code_(code) {}

    instruction read() noexcept
    {
        read_prefixes();
        opcode_ = next();
        if (read_branch())
            return made_;
        const bool two_bytes = opcode_ == 0x0f;
        const std::uint8_t second = two_bytes ? next() : 0;
        const form operands = two_bytes ? form_of_second(second) : form_of(opcode_);
        if (operands == form::unknown || !read_operands(operands))
            return {};
        if (!two_bytes)
            read_effect(operands);
        else if (second == 0x1e || second == 0x1f)
            made_.effect = effect::none;
        made_.is_last = made_.is_last || (!two_bytes && opcode_ == 0xc3);
        made_.bytes = at_;
        return made_;
    }

 private:
    std::uint8_t next() noexcept { return code_[at_++]; }

    void read_prefixes() noexcept
    {
        while (code_[at_] == 0x66 || code_[at_] == 0xf2 || code_[at_] == 0xf3 || code_[at_] == 0x2e ||
               code_[at_] == 0x64)
            short_immediate_ = next() == 0x66 || short_immediate_;
        if ((code_[at_] & 0xf0) == 0x40)
            rex_ = next();
    }
    /// Returns false, and has read nothing, if it is none.
    bool read_branch() noexcept
    {
        const bool long_condition = opcode_ == 0x0f && (code_[at_] & 0xf0) == 0x80;
        if (opcode_ == 0xe8)
            made_.branch = branch::call;
        else if (opcode_ == 0xe9 || opcode_ == 0xeb)
            made_.branch = branch::jump;
        else if (long_condition || (opcode_ & 0xf0) == 0x70)
            made_.branch = branch::condition;
        else
            return false;
        made_.condition = (long_condition ? next() : opcode_) & 0x0f;
        made_.branch_bytes = opcode_ == 0xeb || (opcode_ & 0xf0) == 0x70 ? 1 : 4;
        made_.is_last = made_.branch == branch::jump;
        made_.bytes = at_ + made_.branch_bytes;
        return true;
    }
    std::size_t immediate() const noexcept { return short_immediate_ ? 2 : 4; }

    bool read_operands(form operands) noexcept
    {
        modrm_ = code_[at_];
        const std::uint8_t operation = (modrm_ >> 3) & 7; // of a group
        switch (operands) {
            case form::alone: return true;
            case form::immediate8: at_ += 1; return true;
            case form::immediate32: at_ += immediate(); return true;
            case form::move: at_ += (rex_ & 8) != 0 ? 8 : immediate(); return true;
            case form::group5:
                if (operation == 2 || operation == 3 || operation == 5) // calls, and jumps to another segment
                    return false;
                made_.is_last = operation == 4;
                break;
            default: break;
        }
        read_memory();
        if (operands == form::modrm8 || (operands == form::group3 && operation < 2 && opcode_ == 0xf6))
            at_ += 1;
        else if (operands == form::modrm32 || (operands == form::group3 && operation < 2))
            at_ += immediate();
        return true;
    }
    /// ModRM, SIB and displacement.
    void read_memory() noexcept
    {
        const std::uint8_t modrm = next(), mode = modrm >> 6, base = modrm & 7;
        if (mode == 3)
            return;
        const bool no_base = base == 4 && (next() & 7) == 5 && mode == 0;
        if (mode == 0 && base == 5)
            made_.distance = at_;
        if (mode == 1)
            at_ += 1;
        else if (mode == 2 || no_base || made_.distance != 0)
            at_ += 4;
    }

    std::uint8_t register_of(std::uint8_t low, std::uint8_t rex_bit) const noexcept
    {
        return static_cast<std::uint8_t>((low & 7) | ((rex_ & rex_bit) != 0 ? 8 : 0));
    }
    void change(effect what, std::uint8_t changed) noexcept
    {
        made_.effect = what;
        made_.changed = changed;
    }
    /// Of those that come before a function's body: others stay `other`.
    void read_effect(form operands) noexcept
    {
        const bool between_registers = (modrm_ >> 6) == 3;
        const std::uint8_t named = register_of(modrm_, 1), other = register_of(modrm_ >> 3, 4);
        if (opcode_ >= 0x50 && opcode_ <= 0x57 && !short_immediate_)
            change(effect::push, register_of(opcode_, 1));
        else if (opcode_ == 0x90 || opcode_ == 0x84 || opcode_ == 0x85 || (opcode_ & 0xfc) == 0x38) // nop, test, cmp
            made_.effect = effect::none;
        else if (operands == form::move && opcode_ >= 0xb8)
            change(effect::set, register_of(opcode_, 1));
        else if (between_registers && (opcode_ == 0x89 || opcode_ == 0x31))
            change(effect::set, named);
        else if (opcode_ == 0x8b || opcode_ == 0x8d || opcode_ == 0x63 || (opcode_ == 0x33 && between_registers))
            change(effect::set, other);
        else if ((opcode_ == 0x83 || opcode_ == 0x81) && modrm_ == 0xec && rex_ == 0x48 && !short_immediate_)
            reserve(opcode_ == 0x83);
        if (made_.effect == effect::set && made_.changed == stack_pointer)
            made_.effect = effect::other;
    }
    void reserve(bool one_byte) noexcept
    {
        made_.effect = effect::reserve;
        made_.reserved = static_cast<std::int8_t>(code_[at_ - 1]);
        if (!one_byte)
            std::memcpy(&made_.reserved, &code_[at_ - 4], sizeof made_.reserved);
    }

    const std::uint8_t* const code_;
    instruction made_{};
    std::size_t at_ = 0;
    std::uint8_t opcode_ = 0, modrm_ = 0, rex_ = 0;
    bool short_immediate_ = false;
};

} // namespace

instruction decode(const std::uint8_t* code) noexcept
{
    return reader(code).read();
}

} // namespace weftio::hooks
