#include "storage/staging.hpp"

#include <cstdlib>
#include <utility>

#include "weftio/memory_kind.hpp"

namespace weftio::storage {

namespace {

constexpr std::size_t slot_alignment = 4096; // what any O_DIRECT takes

} // namespace

staging::staging(registrations& rings, std::shared_ptr<devices::device_backend> device, std::size_t slot_bytes,
                 std::size_t most)
    : rings_(rings), device_(std::move(device)), slot_bytes_(slot_bytes), most_(most)
{
    if (device_)
        copies_ = device_->make_copy_queue(device_);
    slots_.reserve(most);
    free_.reserve(most);
}

staging::~staging()
{
    for (const auto& each : slots_) {
        rings_.leave_memory(each->registered);
        if (device_)
            device_->release(each->at, memory_kind::cpu_device);
        else
            std::free(each->at.cpu);
    }
}

staging::slot* staging::take() noexcept
try {
    if (!free_.empty()) {
        slot* taken = free_.back();
        free_.pop_back();
        return taken;
    }
    if (slots_.size() == most_)
        return nullptr;
    auto made = std::make_unique<slot>();
    if (device_)
        made->at = device_->allocate(slot_bytes_, slot_alignment, memory_kind::cpu_device);
    else
        made->at.cpu = made->at.device = std::aligned_alloc(slot_alignment, slot_bytes_);
    if (!made->at.cpu)
        return nullptr;
    made->registered = rings_.enter_memory({made->cpu(), slot_bytes_});
    slots_.push_back(std::move(made));
    return slots_.back().get();
} catch (...) { // no memory: those that are there must do
    return nullptr;
}

std::uint64_t staging::copy(void* to, const void* from, std::size_t bytes) noexcept
{
    copies_->copy(to, from, {.bytes = bytes, .count = 1, .to_stride = bytes, .from_stride = bytes});
    begun_ = true;
    return ended_ + 1;
}

void staging::end_batch() noexcept
{
    if (std::exchange(begun_, false))
        copies_->mark(static_cast<std::uint32_t>(++ended_));
}

bool staging::completed(std::uint64_t batch) noexcept
{
    completed_ += copies_->completed() - static_cast<std::uint32_t>(completed_);
    return batch <= completed_;
}

} // namespace weftio::storage
