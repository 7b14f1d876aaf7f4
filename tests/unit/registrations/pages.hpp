// Pages of a test, and what the process's keys stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "keys/key_table.hpp"
#include "software_nic.hpp"
#include "unit/telemetry/ask.hpp"
#include "weftio/registration_cache.hpp"

namespace weftio::test {

inline const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// Private pages that can be read and written, as far as nobody unmaps them. Beside them nothing is mapped.
class pages {
 public:
    explicit pages(std::size_t count)
        : bytes_((count + 2) * page_bytes),
          at_(static_cast<std::byte*>(mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
    {
        EXPECT_EQ(mprotect(at(0), count * page_bytes, PROT_READ | PROT_WRITE), 0);
    }
    pages(const pages&) = delete;
    pages& operator=(const pages&) = delete;
    ~pages() { munmap(at_, bytes_); }

    std::byte* at(std::size_t page) const { return at_ + (page + 1) * page_bytes; }

 private:
    const std::size_t bytes_;
    std::byte* const at_;
};

/// What the key stands for at the port; nothing: it is refused.
inline std::optional<keys::key_entry> entry_of(const port& port, std::uint32_t key)
{
    const auto found = software_nic(port).keys().find(key);
    return found ? std::optional(found->entry) : std::nullopt;
}

/// The page of telemetry with the rows of caches that exist: earlier numbers are those of other tests.
inline std::string telemetry_of_caches()
{
    const std::string first = ask("/weftio/registration_cache"), name = "\"next\":";
    const std::size_t next = first.find(name);
    return next == std::string::npos
               ? first
               : ask("/weftio/registration_cache," + std::to_string(std::stoul(first.substr(next + name.size()))));
}

inline bool is_exactly(const std::optional<keys::key_entry>& entry, const void* address, std::size_t bytes,
                       access rights)
{
    return entry && entry->base == reinterpret_cast<std::uint64_t>(address) && entry->bytes == bytes &&
           entry->rights == rights;
}

} // namespace weftio::test
