// A jump at the entry of a function: which first instructions it can take the place of, and what threads see meanwhile.
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "hooks/entry_jump.hpp"
#include "hooks/instruction.hpp"
#include "weftio/error.hpp"

namespace weftio::test {
namespace {

using function = int (*)(int);
using code = std::vector<std::uint8_t>;

/// A function in a page of its own, some bytes behind the begin of an aligned word.
class made_function {
 public:
    explicit made_function(const code& bytes, std::size_t offset = 0)
    {
        std::memset(pages_, 0xcc, all);
        at_ = static_cast<std::uint8_t*>(pages_) + 256 + offset;
        std::memcpy(at_, bytes.data(), bytes.size());
        constexpr std::uint32_t word = 1; // that functions read, 128 bytes behind
        std::memcpy(at_ + 128, &word, sizeof word);
        mprotect(pages_, all, PROT_READ | PROT_EXEC);
    }
    made_function(const made_function&) = delete;
    made_function& operator=(const made_function&) = delete;
    ~made_function() = default; // stays: another one at its address could have no jump
    void* at() const { return at_; }
    int operator()(int argument) const { return reinterpret_cast<function>(at_)(argument); }
    /// As a thread that has executed so many bytes.
    int go_on(std::size_t behind, int argument) const { return reinterpret_cast<function>(at_ + behind)(argument); }
    code bytes() const { return {at_, at_ + 32}; }

 private:
    static constexpr std::size_t all = 4096;
    /// Far from other memory, and from the end of the address space, where a jump can lead to nothing: without random
    /// addresses (setarch -R) the system maps everything there.
    static void* next_place()
    {
        static std::atomic<std::uintptr_t> next{0x7e90'0000'0000};
        return reinterpret_cast<void*>(next.fetch_add(std::uintptr_t{6} << 30));
    }

    void* const pages_ = mmap(next_place(), all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::uint8_t* at_ = nullptr;
};

std::atomic<function> original{nullptr};

int add_hundred(int argument)
{
    return original.load()(argument) + 100;
}

struct row {
    const char* name;
    code bytes;
    std::size_t first;   ///< bytes of the first instruction
    int result;          ///< for 1
    bool goes_on = true; ///< what is behind the first instruction can be called by itself, and gives the same
};

void PrintTo(const row& printed, std::ostream* out)
{
    *out << printed.name;
}

// lea eax, [rdi+1]; ret
#define ADD_ONE 0x8d, 0x47, 0x01, 0xc3
// push rbx; sub rsp, 0x20; add rsp, 0x20; pop rbx
#define PUSH_AND_ADD_ONE 0x53, 0x48, 0x83, 0xec, 0x20, 0x48, 0x83, 0xc4, 0x20, 0x5b, ADD_ONE

const row rows[] = {
    {"nop", {0x90, ADD_ONE}, 1, 2},
    {"endbr64", {0xf3, 0x0f, 0x1e, 0xfa, ADD_ONE}, 4, 2},
    {"push rbx", {PUSH_AND_ADD_ONE}, 1, 2, false},
    {"push r12", {0x41, 0x54, 0x41, 0x5c, ADD_ONE}, 2, 2, false},
    {"sub rsp", {0x48, 0x83, 0xec, 0x28, 0x48, 0x83, 0xc4, 0x28, ADD_ONE}, 4, 2, false},
    {"sub rsp, many", {0x48, 0x81, 0xec, 0xd8, 0, 0, 0, 0x48, 0x81, 0xc4, 0xd8, 0, 0, 0, ADD_ONE}, 7, 2, false},
    {"lea rax, [rsp+8]", {0x48, 0x8d, 0x44, 0x24, 0x08, ADD_ONE}, 5, 2},
    {"mov [rsp-8], rdi", {0x48, 0x89, 0x7c, 0x24, 0xf8, ADD_ONE}, 5, 2},
    {"movslq rax, edi", {0x48, 0x63, 0xc7, ADD_ONE}, 3, 2},
    {"test byte [rsp-8]", {0xf6, 0x44, 0x24, 0xf8, 0x01, ADD_ONE}, 5, 2},
    {"movabs", {0x49, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8, ADD_ONE}, 10, 2},
    {"mov eax", {0xb8, 0x07, 0, 0, 0, 0xc3}, 5, 7, false},
    {"mov ax", {0x66, 0xb8, 0x07, 0, ADD_ONE}, 4, 2},
    {"xor eax, eax; ret", {0x31, 0xc0, 0xc3}, 2, 0, false},
    {"long nop", {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, ADD_ONE}, 8, 2},
    {"mov eax, [word]", {0x8b, 0x05, 122, 0, 0, 0, 0x01, 0xf8, 0xc3}, 6, 2, false},
    {"cmp [word], 1",
     {0x81, 0x3d, 118, 0, 0, 0, 1, 0, 0, 0, 0x0f, 0x94, 0xc0, 0x0f, 0xb6, 0xc0, 0x01, 0xf8, 0xc3},
     10,
     2,
     false},
    {"call", {0x53, 0x48, 0x89, 0xfb, 0xe8, 0x06, 0, 0, 0, 0x5b, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, ADD_ONE}, 1, 2, false},
    {"sub rsp; call",
     {0x48, 0x83, 0xec, 0x08, 0xe8, 0x09, 0, 0, 0, 0x48, 0x83, 0xc4, 0x08, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, ADD_ONE},
     4,
     2,
     false},
    {"test; je", {0x85, 0xff, 0x74, 0x04, ADD_ONE, 0xb8, 0x07, 0, 0, 0, 0xc3}, 2, 2},
    {"jmp near", {0xe9, 0x03, 0, 0, 0, 0xcc, 0xcc, 0xcc, ADD_ONE}, 5, 2, false},
    {"jmp short", {0xeb, 0x01, 0xcc, ADD_ONE}, 2, 2, false},
};

/// Bytes of one instruction are other ones. Returns where that begins.
std::size_t expect_one_instruction(const code& before, const code& during)
{
    const auto differs = [&](std::size_t at) { return before[at] != during[at]; };
    std::size_t first = 0, last = before.size() - 1;
    while (!differs(first))
        ++first;
    while (!differs(last))
        --last;
    std::size_t at = 0;
    while (at + hooks::decode(&before[at]).bytes <= first)
        at += hooks::decode(&before[at]).bytes;
    EXPECT_LT(last, at + hooks::decode(&before[at]).bytes);
    return at;
}

class EntryJumps : public testing::TestWithParam<std::tuple<row, std::size_t>> {};

} // namespace

TEST_P(EntryJumps, ChangeOneInstruction)
{
    const auto& [what, offset] = GetParam();
    const made_function made(what.bytes, offset);
    EXPECT_EQ(hooks::decode(static_cast<const std::uint8_t*>(made.at())).bytes, what.first);
    const code before = made.bytes();
    ASSERT_EQ(made(1), what.result);
    hooks::entry_jump jump("made", made.at(), reinterpret_cast<void*>(&add_hundred));
    original.store(reinterpret_cast<function>(jump.original()));
    EXPECT_EQ(made.bytes(), before) << "nothing is changed yet";
    EXPECT_EQ(original.load()(1), what.result);
    jump.put();
    EXPECT_EQ(made(1), what.result + 100);
    const code during = made.bytes();
    EXPECT_NE(during, before);
    const std::size_t changed = expect_one_instruction(before, during);
    if (what.goes_on && changed < what.first) {
        EXPECT_EQ(made.go_on(what.first, 1), what.result) << "a thread that was behind the first instruction";
    }
    EXPECT_TRUE(jump.remove());
    EXPECT_EQ(made.bytes(), before);
    EXPECT_EQ(made(1), what.result);
    EXPECT_EQ(original.load()(1), what.result) << "threads may be in it still";
    jump.put();
    EXPECT_EQ(made(1), what.result + 100);
    EXPECT_TRUE(jump.remove());
}

INSTANTIATE_TEST_SUITE_P(Rows, EntryJumps,
                         testing::Combine(testing::ValuesIn(rows), testing::Values(0, 3, 60, 61, 62)));

namespace {

/// What is refused, and says why. Nothing is changed.
std::string refusal_of(const made_function& made)
{
    const code before = made.bytes();
    try {
        hooks::entry_jump jump("made", made.at(), reinterpret_cast<void*>(&add_hundred));
    } catch (const error& refused) {
        EXPECT_EQ(refused.code(), errc::not_supported);
        EXPECT_EQ(made.bytes(), before);
        return refused.what();
    }
    return "";
}

} // namespace

TEST(EntryJump, RefusesInstructionsThatCannotBeMoved)
{
    for (const code& bytes : {code{0x0f, 0x05, 0xc3}, code{0xff, 0x15, 0, 0, 0, 0}, code{0xcc}, code{0x06}})
        EXPECT_THAT(refusal_of(made_function(bytes)), testing::HasSubstr("its first instruction ("));
}

/// The bytes behind a first instruction of one byte determine where the jump leads: 0x1122050f further. Behind it is a
/// system call.
TEST(EntryJump, RefusesWhereNothingIsFree)
{
    const made_function made({0x90, 0x0f, 0x05, 0x22, 0x11});
    auto* const target = static_cast<std::uint8_t*>(made.at()) + 5 + 0x1122050f;
    auto* const page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(target) & ~4095ul);
    void* const used = mmap(page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (used == MAP_FAILED)
        GTEST_SKIP() << "something is there, so that it would be refused anyway";
    EXPECT_THAT(refusal_of(made), testing::HasSubstr("all memory is in use where a jump from its first bytes (90 0f 05 "
                                                     "22 11) can lead"));
    munmap(used, 4096);
    EXPECT_EQ(refusal_of(made), "");
}

TEST(EntryJump, MovesBranches)
{
    const made_function made({0x85, 0xff, 0x74, 0x04, ADD_ONE, 0xb8, 0x07, 0, 0, 0, 0xc3});
    const hooks::entry_jump jump("made", made.at(), reinterpret_cast<void*>(&add_hundred));
    const auto moved = reinterpret_cast<function>(jump.original());
    EXPECT_EQ(moved(1), 2);
    EXPECT_EQ(moved(0), 7);
}

/// push rbx; mov rbx, rdi; mov eax, 1; sub ebx, 1; jne to the second mov, which has the room of a jump.
TEST(EntryJump, StaysAwayFromWhatABranchLeadsTo)
{
    const made_function made({0x53, 0x48, 0x89, 0xfb, 0xb8, 1, 0, 0, 0, 0x83, 0xeb, 0x01, 0x75, 0xf6, 0x5b, 0xc3});
    hooks::entry_jump jump("made", made.at(), reinterpret_cast<void*>(&add_hundred));
    original.store(reinterpret_cast<function>(jump.original()));
    const code before = made.bytes();
    jump.put();
    EXPECT_LT(expect_one_instruction(before, made.bytes()), 4u);
    EXPECT_EQ(made(3), 101);
    EXPECT_TRUE(jump.remove());
}

/// The bytes behind their first instructions are the same: their jumps lead into one page.
TEST(EntryJump, TakesFunctionsSideBySide)
{
    code several;
    for (int each = 0; each < 3; ++each)
        several.insert(several.end(), {PUSH_AND_ADD_ONE, 0xcc, 0xcc});
    const made_function made(several);
    auto* const first = static_cast<std::uint8_t*>(made.at());
    hooks::entry_jump one("one", first, reinterpret_cast<void*>(&add_hundred));
    hooks::entry_jump two("two", first + 16, reinterpret_cast<void*>(&add_hundred));
    one.put();
    hooks::entry_jump three("three", first + 32, reinterpret_cast<void*>(&add_hundred));
    two.put();
    three.put();
    original.store(reinterpret_cast<function>(two.original()));
    for (const std::size_t each : {0U, 16U, 32U})
        EXPECT_EQ(made.go_on(each, 1), 102);
    EXPECT_TRUE(two.remove());
    EXPECT_EQ(made.go_on(0, 1), 102);
    EXPECT_EQ(made.go_on(16, 1), 2);
    EXPECT_TRUE(one.remove());
    EXPECT_TRUE(three.remove());
}

TEST(EntryJump, LeavesTheJumpOfSomebodyElse)
{
    const made_function made({0xf3, 0x0f, 0x1e, 0xfa, ADD_ONE});
    hooks::entry_jump below("made", made.at(), reinterpret_cast<void*>(&add_hundred));
    original.store(reinterpret_cast<function>(below.original()));
    below.put();
    static std::atomic<function> of_above{nullptr};
    const auto add_thousand = +[](int argument) { return of_above.load()(argument) + 1000; };
    hooks::entry_jump above("made", made.at(), reinterpret_cast<void*>(add_thousand));
    of_above.store(reinterpret_cast<function>(above.original()));
    above.put();
    EXPECT_EQ(made(1), 1102);
    EXPECT_FALSE(below.remove());
    EXPECT_EQ(made(1), 1102);
    EXPECT_TRUE(above.remove());
    EXPECT_TRUE(below.remove());
    EXPECT_EQ(made(1), 2);
}

TEST(EntryJump, RefusesCodeThatHasChanged)
{
    const made_function made({0xf3, 0x0f, 0x1e, 0xfa, ADD_ONE});
    hooks::entry_jump one("made", made.at(), reinterpret_cast<void*>(&add_hundred));
    hooks::entry_jump other("made", made.at(), reinterpret_cast<void*>(&add_hundred));
    original.store(reinterpret_cast<function>(one.original()));
    one.put();
    EXPECT_THROW(other.put(), error);
    EXPECT_FALSE(other.remove());
    EXPECT_EQ(made(1), 102);
    EXPECT_TRUE(one.remove());
}

/// Threads call all the time; each call is either of the two.
TEST(EntryJump, ComesAndGoesWhileThreadsCall)
{
    const made_function with_endbr({0xf3, 0x0f, 0x1e, 0xfa, ADD_ONE}), with_push({PUSH_AND_ADD_ONE}, 3);
    const made_function across({0x8d, 0x84, 0x27, 1, 0, 0, 0, 0xc3}, 62); // lea eax, [rdi + 1], in two cache lines
    for (const made_function* made : {&with_endbr, &with_push, &across}) {
        hooks::entry_jump jump("made", made->at(), reinterpret_cast<void*>(&add_hundred));
        original.store(reinterpret_cast<function>(jump.original()));
        std::atomic<bool> over{false};
        std::atomic<unsigned> wrong{0}, plain{0}, hooked{0};
        std::vector<std::thread> threads;
        for (int thread = 0; thread < 2; ++thread)
            threads.emplace_back([&] {
                while (!over.load()) {
                    const int got = (*made)(1);
                    ++(got == 2 ? plain : got == 102 ? hooked : wrong);
                }
            });
        for (int round = 0; round < 100 || plain.load() == 0 || hooked.load() == 0; ++round) {
            jump.put();
            std::this_thread::yield();
            EXPECT_TRUE(jump.remove());
            std::this_thread::yield();
        }
        over = true;
        for (std::thread& each : threads)
            each.join();
        EXPECT_EQ(wrong.load(), 0u);
    }
}

} // namespace weftio::test
