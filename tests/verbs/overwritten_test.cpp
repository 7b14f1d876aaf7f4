// Libraries that overwrite the code of the function that dlsym() finds, as UCX does with mmap().
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "node.hpp"

namespace weftio::test {

namespace {

using map_function = void* (*)(void*, std::size_t, int, int, int, off_t);

map_function found(const char* name)
{
    return reinterpret_cast<map_function>(::dlsym(RTLD_DEFAULT, name));
}

constexpr int rights = PROT_READ | PROT_WRITE;

void expect_toy(void* page)
{
    ASSERT_NE(MAP_FAILED, page) << std::strerror(errno);
    EXPECT_STREQ("toy", static_cast<const char*>(page));
    ::munmap(page, 4096);
}

TEST(Mapping, ByTheFunctionThatDlsymFindsIsTheEnginesToo)
{
    const int node = open_node(0);
    expect_toy(found("mmap")(nullptr, 4096, rights, MAP_SHARED, node, 4096));
    expect_toy(found("mmap64")(nullptr, 4096, rights, MAP_SHARED, node, 4096));
    ::close(node);
}

#if defined(__x86_64__)
int seen = 0;
void* map_by_kernel(void* wish, std::size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
    ++seen;
    return reinterpret_cast<void*>(::syscall(SYS_mmap, wish, bytes, protection, flags, descriptor, offset));
}

/// During its lifetime, the code of a function is a jump to map_by_kernel().
class overwritten {
 public:
    explicit overwritten(map_function function) : at_(reinterpret_cast<unsigned char*>(function))
    {
        const auto page = reinterpret_cast<std::uintptr_t>(at_) & ~std::uintptr_t{4095};
        EXPECT_EQ(0, ::mprotect(reinterpret_cast<void*>(page), 8192, PROT_READ | PROT_WRITE | PROT_EXEC));
        std::memcpy(before_, at_, sizeof before_);
        unsigned char jump[sizeof before_] = {0x48, 0xb8}; // mov $address, %rax; jmp *%rax
        const auto target = reinterpret_cast<std::uintptr_t>(&map_by_kernel);
        std::memcpy(jump + 2, &target, sizeof target);
        jump[10] = 0xff;
        jump[11] = 0xe0;
        std::memcpy(at_, jump, sizeof jump);
    }
    overwritten(const overwritten&) = delete;
    overwritten& operator=(const overwritten&) = delete;
    ~overwritten() { std::memcpy(at_, before_, sizeof before_); }

 private:
    unsigned char* const at_;
    unsigned char before_[12];
};

TEST(Mapping, OfANodeIsTheEnginesWhenTheFunctionIsOverwritten)
{
    const int node = open_node(0);
    const struct {
        const char* name;
        map_function bound;
    } functions[] = {{"mmap", ::mmap}, {"mmap64", ::mmap64}};
    for (const auto& [name, bound] : functions) {
        const overwritten function(found(name));
        expect_toy(bound(nullptr, 4096, rights, MAP_SHARED, node, 4096));
        seen = 0;
        void* const plain = bound(nullptr, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(MAP_FAILED, plain);
        EXPECT_LE(1, seen) << "who overwrote it sees all others";
        ::munmap(plain, 4096);
    }
    ::close(node);
}
#endif

} // namespace
} // namespace weftio::test
