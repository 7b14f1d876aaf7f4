// The copy engines of several devices, found by device.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "devices/backend.hpp"

namespace weftio::nic::soft {

/// One copy engine (Lane) for each device whose memory is registered and not accessible by the CPU. References to a
/// stream stay valid.
template <class Stream>
class by_device {
 public:
    /// nullptr: there is none for this device.
    Stream* find(const devices::device_backend* device) const noexcept
    {
        for (const element& each : elements_)
            if (each.device.get() == device)
                return each.stream.get();
        return nullptr;
    }
    void add(std::shared_ptr<devices::device_backend> device, std::unique_ptr<Stream> stream)
    {
        elements_.push_back({std::move(device), std::move(stream)});
    }
    std::size_t count() const noexcept { return elements_.size(); }
    Stream& at(std::size_t number) const noexcept { return *elements_[number].stream; }
    /// Called at the end of a turn: the copies started since the last call become a batch.
    void end_batches() const noexcept
    {
        for (const element& each : elements_)
            each.stream->end_batch();
    }

 private:
    struct element {
        std::shared_ptr<devices::device_backend> device;
        std::unique_ptr<Stream> stream;
    };
    std::vector<element> elements_;
};

} // namespace weftio::nic::soft
