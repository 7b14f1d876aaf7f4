// A fake device whose memory the CPU cannot access, with a copy engine that completes each batch with a delay.
#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "devices/backend.hpp"
#include "weftio/device.hpp"

namespace weftio::test {

/// Completes a batch in every third call of completed(). One thread at a time.
class late_copies final : public devices::copy_queue {
 public:
    void copy(void* to, const void* from, const rows& rows) noexcept override
    {
        begun_.push_back({to, from, rows.bytes});
    }
    void fill(void*, std::uint32_t, std::size_t) noexcept override {}
    void mark(std::uint32_t number) noexcept override { batches_.push_back({number, std::exchange(begun_, {})}); }
    std::uint32_t completed() const noexcept override
    {
        if (++looks_ % 3 == 0 && !batches_.empty()) {
            for (const one& each : batches_.front().copies)
                std::memcpy(each.to, each.from, each.bytes);
            completed_ = batches_.front().number;
            batches_.pop_front();
        }
        return completed_;
    }
    bool failed() const noexcept override { return fails; }

    static inline bool fails = false;

 private:
    struct one {
        void* to;
        const void* from;
        std::size_t bytes;
    };
    struct batch {
        std::uint32_t number;
        std::vector<one> copies;
    };
    std::vector<one> begun_;
    mutable std::deque<batch> batches_;
    mutable std::uint32_t completed_ = 0, looks_ = 0;
};

class near_device final : public devices::device_backend {
 public:
    const std::string& name() const noexcept override { return name_; }
    allocation allocate(std::size_t bytes, std::size_t alignment, memory_kind) override
    {
        void* const made = std::aligned_alloc(alignment, bytes);
        return {.cpu = made, .device = made};
    }
    void release(const allocation& allocation, memory_kind) noexcept override { std::free(allocation.device); }
    std::shared_ptr<devices::copy_queue> make_copy_queue(std::shared_ptr<device_backend>) override
    {
        return std::make_shared<late_copies>();
    }
    std::shared_ptr<devices::running_backend> launch(const devices::launch_request&,
                                                     std::shared_ptr<device_backend>) override
    {
        return nullptr;
    }
    const weftio_dev_clock* clock() const noexcept override { return nullptr; }

 private:
    std::string name_ = "near";
};

/// Memory of the fake device, for the library; the test can access the bytes.
inline std::shared_ptr<devices::memory_block> near_block(std::vector<std::byte>& bytes)
{
    auto made = std::make_shared<devices::memory_block>(std::make_shared<near_device>());
    made->at.device = bytes.data();
    made->bytes = bytes.size();
    made->kind = memory_kind::device;
    made->adopted = true;
    return made;
}

} // namespace weftio::test
