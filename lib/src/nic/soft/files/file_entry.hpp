// An entry of a file queue, decoded and checked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "keys/queue_keys.hpp"
#include "nic/soft/files/file_part.hpp"
#include "nic/soft/work/entry.hpp"
#include "storage/statistics.hpp"

namespace weftio::nic::soft {

/// The files that entries may name.
class file_keys {
 public:
    /// Any thread; takes locks only briefly. @return whether a file has the key
    virtual bool find(std::uint32_t key, held_file& out) const noexcept = 0;
    /// What to measure for an operation that begins now, in memory of that device.
    virtual storage::measured begin(std::uint64_t bytes, const devices::device_backend* owner) const noexcept = 0;
    /// Counts an operation that has ended.
    virtual void count(storage::io::kind what, const file_result& result,
                       const storage::measured& how) const noexcept = 0;
    /// Whether an operation that would fall back to another way is refused.
    virtual bool strict() const noexcept { return false; }

 protected:
    ~file_keys() = default;
};

struct file_entry {
    storage::io::kind what = storage::io::kind::read;
    bool waits_for_all = false; ///< it begins when all earlier entries are done
    std::uint32_t file_key = 0;
    held_file file{};
    std::uint64_t offset = 0; ///< in the file
    std::uint64_t bytes = 0;
    std::byte* at = nullptr;                         ///< CPU address, or address of `device` if that is set
    const devices::device_backend* device = nullptr; ///< device, if the CPU cannot access its memory
    const devices::device_backend* owner = nullptr;  ///< device that owns the memory, even if the CPU can access it
    std::uint32_t memory_key = 0;
    keys::held_key by{};

    /// Why it cannot use the way that its file and its memory ask for.
    file_fall fall() const noexcept;
    /// Alignment of offsets and sizes for which O_DIRECT is used; 1: any. Writes use whole pages: the cache must not
    /// contain a dirty page of which O_DIRECT writes a part.
    std::uint32_t align() const noexcept;
    /// The descriptor for a part at this offset in the file.
    int descriptor_for(std::uint64_t offset, std::uint32_t bytes, const std::byte* address) const noexcept;
};

/// Decodes an entry, and finds its file and its memory. Returns why it cannot be executed, or refusal::none.
refusal read_file_entry(const entry& entry, const file_keys& files, const keys::queue_keys& keys,
                        file_entry& out) noexcept;

} // namespace weftio::nic::soft
