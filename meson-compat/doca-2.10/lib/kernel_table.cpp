#include "kernel_table.hpp"

#include <cstring>
#include <utility>

#include "weftio/error.hpp"

namespace weftio::doca {

table_memory::table_memory(const device& device)
{
    if (!device.name().starts_with("cuda"))
        return;
    try {
        memory_.emplace(device.allocate(bytes, memory_kind::device));
    } catch (const error&) { // tables are then in memory of the host
    }
}

void* table_memory::take(std::size_t size)
{
    constexpr std::size_t line = 128;
    const std::lock_guard lock(mutex_);
    if (!memory_)
        return nullptr;
    std::size_t begin = 0;
    for (const auto& [first, end] : taken_) {
        if (first - begin >= size)
            break;
        begin = (end + line - 1) / line * line;
    }
    if (begin > bytes || bytes - begin < size)
        return nullptr;
    taken_[begin] = begin + size;
    return static_cast<std::byte*>(memory_->device_address()) + begin;
}

void table_memory::give_back(void* address)
{
    const std::lock_guard lock(mutex_);
    taken_.erase(static_cast<std::size_t>(static_cast<std::byte*>(address) -
                                          static_cast<std::byte*>(memory_->device_address())));
}

kernel_table::kernel_table(const device& device, std::shared_ptr<table_memory> from, std::size_t size)
    : device_(device), address_(from->take(size))
{
    if (address_) {
        from_ = std::move(from);
    } else {
        own_ = device.allocate(size, memory_kind::cpu_device);
        address_ = own_.device_address();
    }
}

kernel_table& kernel_table::operator=(kernel_table&& other) noexcept
{
    std::swap(device_, other.device_);
    std::swap(from_, other.from_);
    std::swap(own_, other.own_);
    std::swap(address_, other.address_);
    return *this;
}

kernel_table::~kernel_table()
{
    if (from_)
        from_->give_back(address_);
}

void kernel_table::write(const std::vector<std::byte>& content)
{
    if (from_)
        device_->adopt(address_, content.size()).upload(content.data(), content.size());
    else
        std::memcpy(own_.cpu_address(), content.data(), content.size());
}

} // namespace weftio::doca
