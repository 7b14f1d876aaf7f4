// A descriptor of the caller's, as an engine knows it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "storage/context.hpp"
#include "storage/vendor_library.hpp"
#include "storage/write_gate.hpp"

namespace weftio::storage {

class open_file {
 public:
    /// Throws what the constructor of file throws.
    static std::shared_ptr<open_file> open(std::shared_ptr<context> engine, int descriptor);
    open_file(const open_file&) = delete;
    open_file& operator=(const open_file&) = delete;
    ~open_file();

    int descriptor() const noexcept { return descriptor_; }
    bool direct() const noexcept { return direct_; }
    std::uint32_t key() const noexcept { return key_; }
    /// The name of one of its descriptors among what rings may register.
    std::uint64_t name_of(int descriptor) const noexcept
    {
        if (descriptor == descriptor_)
            return name_;
        return name_ + (descriptor == second_direct_.load(std::memory_order_relaxed) ? 1 : 2);
    }
    context& engine() const noexcept { return *engine_; }

    /// What O_DIRECT wants offsets and sizes, and memory, to be multiples of. Writes are aligned to pages at least.
    std::uint32_t offset_align() const noexcept { return offset_align_; }
    std::uint32_t memory_align() const noexcept { return memory_align_; }
    /// Whether a transfer of a file opened without O_DIRECT is to avoid the page cache.
    bool wants_direct(std::size_t bytes) const noexcept
    {
        return engine_->options().reopen_direct && bytes >= engine_->options().part_bytes;
    }
    /// The same file with O_DIRECT, and without: opened when first asked for. -1: it cannot be.
    int second_direct() noexcept { return second(second_direct_, true); }
    int buffered() noexcept { return direct_ ? second(second_buffered_, false) : descriptor_; }

    /// The file as NVIDIA's library has it, entered when first asked for; nullptr: it is unavailable, or refuses the
    /// file.
    const vendor_file* vendor() noexcept;
    /// Transfers of at most so many bytes go by pread and pwrite.
    std::uint64_t posix_at_most() const noexcept { return posix_at_most_; }
    /// Whether the configuration's denylist has its mount or its file system.
    bool denied() const noexcept { return denied_; }

    /// Whether its writes may be direct or cached, and need the gate.
    bool mixes() const noexcept { return direct_ || engine_->options().reopen_direct; }
    write_gate gate;

 private:
    static constexpr int unopened = -2;

    open_file(std::shared_ptr<context> engine, int descriptor);
    void find_alignment();
    void find_mount();
    int second(std::atomic<int>& which, bool direct) noexcept;
    int reopen(bool direct) const noexcept;

    static constexpr unsigned descriptors = 3;

    std::shared_ptr<context> engine_;
    const int descriptor_;
    const std::uint64_t name_ = registrations::name_files(descriptors);
    dev_t device_ = 0; ///< with inode_: which file it is
    ino_t inode_ = 0;
    int flags_ = 0; ///< of open()
    bool direct_ = false;
    std::uint32_t offset_align_ = 4096, memory_align_ = 4096;
    std::uint32_t key_ = 0;
    std::uint64_t posix_at_most_ = 0;
    bool denied_ = false;
    std::mutex mutex_; ///< while a second descriptor is opened, or NVIDIA's library has its turn
    std::atomic<bool> vendor_tried_{false};
    std::unique_ptr<vendor_file> vendor_; ///< unchanged once vendor_tried_ is set
    std::atomic<int> second_direct_{unopened}, second_buffered_{unopened};
};

} // namespace weftio::storage
