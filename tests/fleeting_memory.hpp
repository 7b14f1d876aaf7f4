// Memory of the application that is unmapped or truncated while a memory region of it exists.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace weftio::test {

enum class leaving : std::uint8_t {
    unmapped, ///< munmap(): SIGSEGV
    truncated ///< ftruncate() of its file: SIGBUS
};

inline std::string name_of_leaving(const testing::TestParamInfo<leaving>& info)
{
    return info.param == leaving::unmapped ? "Unmapped" : "Truncated";
}

/// The engine's text for this failure.
inline constexpr const char* gone_words =
    "the memory of the key's region cannot be accessed any more: it was unmapped or protected (mprotect), or its file "
    "was truncated";

/// An address far below all mappings; each call returns another. The system places new mappings as high as possible, so
/// no mapping of another thread is placed there. Sanitizers treat the address as memory of the application.
inline void* lonely_address()
{
    static std::atomic<std::uintptr_t> next{0x7e9000000000};
    constexpr std::uintptr_t apart = std::uintptr_t{1} << 24;
    return reinterpret_cast<void*>(next.fetch_add(apart));
}

class fleeting_memory {
 public:
    explicit fleeting_memory(leaving way, std::size_t bytes = 65536) : way_(way), bytes_(bytes)
    {
        if (way == leaving::truncated)
            file_ = memfd_create("fleeting", MFD_CLOEXEC);
        map();
    }
    fleeting_memory(const fleeting_memory&) = delete;
    fleeting_memory& operator=(const fleeting_memory&) = delete;
    ~fleeting_memory()
    {
        if (way_ == leaving::truncated || there_)
            munmap(at_, bytes_);
        if (file_ >= 0)
            close(file_);
    }

    std::uint8_t* data() const { return at_; }
    std::size_t bytes() const { return bytes_; }
    void go()
    {
        there_ = false;
        EXPECT_EQ(way_ == leaving::unmapped ? munmap(at_, bytes_) : ftruncate(file_, 0), 0);
    }
    /// Maps the memory again at the same address, all bytes 0.
    void come_back()
    {
        if (way_ == leaving::unmapped) {
            map();
        } else {
            EXPECT_EQ(ftruncate(file_, static_cast<off_t>(bytes_)), 0);
        }
        there_ = true;
    }

 private:
    void map()
    {
        if (file_ >= 0) {
            EXPECT_EQ(ftruncate(file_, static_cast<off_t>(bytes_)), 0);
        }
        ASSERT_EQ(mmap(at_, bytes_, PROT_READ | PROT_WRITE,
                       MAP_FIXED_NOREPLACE | (file_ >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS), file_, 0),
                  at_);
        there_ = true;
    }

    const leaving way_;
    const std::size_t bytes_;
    int file_ = -1;
    std::uint8_t* at_ = static_cast<std::uint8_t*>(lonely_address());
    bool there_ = false;
};

} // namespace weftio::test
