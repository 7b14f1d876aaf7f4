// A fake device whose memory nobody can access by its address: a load or store there kills the test. Its copy engine
// goes by an alias of the pages.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "regions/named_region.hpp"
#include "weftio/memory.hpp"

namespace weftio::test {

/// Pages that have two addresses, of which one cannot be accessed.
class hidden_pages {
 public:
    explicit hidden_pages(std::size_t bytes) : bytes_(bytes)
    {
        const int file = memfd_create("hidden", MFD_CLOEXEC);
        EXPECT_EQ(ftruncate(file, static_cast<off_t>(bytes)), 0);
        hidden_ = map(file, PROT_NONE);
        seen_ = map(file, PROT_READ | PROT_WRITE);
        close(file);
    }
    hidden_pages(const hidden_pages&) = delete;
    hidden_pages& operator=(const hidden_pages&) = delete;
    ~hidden_pages()
    {
        munmap(hidden_, bytes_);
        munmap(seen_, bytes_);
    }
    std::byte* hidden() const { return hidden_; }
    std::uint8_t* seen() const { return reinterpret_cast<std::uint8_t*>(seen_); }
    std::size_t bytes() const { return bytes_; }
    /// Whether all of these bytes are here.
    bool hold(const void* address, std::size_t bytes) const
    {
        const auto* const at = static_cast<const std::byte*>(address);
        return at >= hidden_ && at <= hidden_ + bytes_ && bytes <= static_cast<std::size_t>(hidden_ + bytes_ - at);
    }
    /// Where the CPU finds what is at this address; any other address stays what it is.
    std::byte* alias(const void* address) const
    {
        auto* const at = const_cast<std::byte*>(static_cast<const std::byte*>(address));
        return at >= hidden_ && at < hidden_ + bytes_ ? seen_ + (at - hidden_) : at;
    }

 private:
    std::byte* map(int file, int protection) const
    {
        return static_cast<std::byte*>(mmap(nullptr, bytes_, protection, MAP_SHARED, file, 0));
    }

    const std::size_t bytes_;
    std::byte *hidden_ = nullptr, *seen_ = nullptr;
};

/// Executes copies when they are marked, or when the test lets it.
class hidden_copies final : public devices::copy_queue {
 public:
    explicit hidden_copies(const hidden_pages& pages) : pages_(pages) {}
    void copy(void* to, const void* from, const rows& shape) noexcept override
    {
        ++begun;
        for (std::size_t row = 0; row < shape.count; ++row)
            copies_.push_back({static_cast<std::byte*>(to) + row * shape.to_stride,
                               static_cast<const std::byte*>(from) + row * shape.from_stride, shape.bytes});
    }
    bool try_copy(void* to, const void* from, std::size_t bytes, direction which) noexcept override
    {
        if (refuses)
            return false;
        EXPECT_TRUE(pages_.hold(which == direction::to_device ? to : from, bytes));
        return copy_queue::try_copy(to, from, bytes, which);
    }
    void fill(void*, std::uint32_t, std::size_t) noexcept override { ADD_FAILURE() << "nobody fills"; }
    void mark(std::uint32_t number) noexcept override
    {
        ++marked;
        last_ = number;
        if (!holds)
            complete_all();
    }
    std::uint32_t completed() const noexcept override { return completed_; }
    bool failed() const noexcept override { return broken; }
    void complete_all() noexcept
    {
        for (const one& each : copies_)
            std::memcpy(pages_.alias(each.to), pages_.alias(each.from), each.bytes);
        copies_.clear();
        completed_ = last_;
    }
    void let_go() noexcept
    {
        holds = false;
        complete_all();
    }

    bool holds = false, refuses = false, broken = false;
    unsigned begun = 0, marked = 0;

 private:
    struct one {
        void* to;
        const void* from;
        std::size_t bytes;
    };
    const hidden_pages& pages_;
    std::vector<one> copies_;
    std::uint32_t last_ = 0, completed_ = 0;
};

class hidden_gpu final : public devices::device_backend {
 public:
    explicit hidden_gpu(std::size_t bytes) : pages(bytes) {}
    const std::string& name() const noexcept override { return name_; }
    /// Host memory, which the copy engine reads and writes too.
    allocation allocate(std::size_t bytes, std::size_t alignment, memory_kind) override
    {
        void* const made = std::aligned_alloc(alignment, bytes);
        return {.cpu = made, .device = made};
    }
    void release(const allocation& allocation, memory_kind) noexcept override { std::free(allocation.cpu); }
    /// The second one of a port is for its queue pairs.
    std::shared_ptr<devices::copy_queue> make_copy_queue(std::shared_ptr<device_backend>) override
    {
        copies = std::make_shared<hidden_copies>(pages);
        return copies;
    }
    std::shared_ptr<devices::running_backend> launch(const devices::launch_request&,
                                                     std::shared_ptr<device_backend>) override
    {
        return nullptr;
    }
    const weftio_dev_clock* clock() const noexcept override { return nullptr; }

    hidden_pages pages;
    std::shared_ptr<hidden_copies> copies; ///< made last

 private:
    const std::string name_ = "hidden";
};

/// Memory of a device of its own that is registered with a port.
class hidden_memory {
 public:
    hidden_memory(const port& port, std::size_t bytes, access rights)
        : gpu(std::make_shared<hidden_gpu>(bytes)), block_(std::make_shared<devices::memory_block>(gpu))
    {
        block_->at.device = gpu->pages.hidden();
        block_->bytes = bytes;
        block_->kind = memory_kind::device;
        block_->adopted = true;
        region_.emplace(block_, regions::region_use::entries, region_options{.rights = rights});
        region_->register_with(detail::internals::backend(port));
    }
    std::uint64_t address(std::size_t at = 0) const
    {
        return reinterpret_cast<std::uintptr_t>(gpu->pages.hidden()) + at;
    }
    std::uint32_t lkey() const { return region_->lkey(); }
    std::uint8_t* data() const { return gpu->pages.seen(); }
    hidden_copies& copies() const { return *gpu->copies; }
    void end() { region_.reset(); }

    std::shared_ptr<hidden_gpu> gpu;

 private:
    std::shared_ptr<devices::memory_block> block_;
    std::optional<regions::named_region> region_;
};

} // namespace weftio::test
