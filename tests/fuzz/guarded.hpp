// Memory in which every wrong access is detected.
#pragma once

#include <cstddef>
#include <system_error>

#include <sys/mman.h>
#include <unistd.h>

namespace weftio::fuzz {

/// Whole pages that are mapped twice, each time between two guard pages: writable for the kernel, read-only for the
/// NIC. The mappings stay until the end of the process. Throws std::system_error.
class guarded {
 public:
    static constexpr std::size_t page = 4096;

    /// @param bytes  a multiple of `page`
    explicit guarded(std::size_t bytes) : bytes_(bytes)
    {
        int file = memfd_create("guarded", 0);
        if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0)
            throw std::system_error(errno, std::generic_category(), "memory that is mapped twice");
        kernel_ = view(file, PROT_READ | PROT_WRITE);
        nic_ = view(file, PROT_READ);
        close(file);
    }

    std::byte* kernel() const noexcept { return kernel_; }
    std::byte* nic() const noexcept { return nic_; }
    std::size_t bytes() const noexcept { return bytes_; }
    bool nic_sees(const std::byte* begin, std::size_t count) const noexcept
    {
        return begin >= nic_ && count <= bytes_ && begin <= nic_ + bytes_ - count;
    }

 private:
    std::byte* view(int file, int rights) const
    {
        void* all = mmap(nullptr, bytes_ + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED)
            throw std::system_error(errno, std::generic_category(), "pages that nobody may touch");
        void* inside = mmap(static_cast<std::byte*>(all) + page, bytes_, rights, MAP_SHARED | MAP_FIXED, file, 0);
        if (inside == MAP_FAILED)
            throw std::system_error(errno, std::generic_category(), "memory between guard pages");
        return static_cast<std::byte*>(inside);
    }

    std::size_t bytes_;
    std::byte* kernel_;
    std::byte* nic_;
};

} // namespace weftio::fuzz
