// What kernels read of queues and arrays, in memory near them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "weftio/device.hpp"

namespace weftio::doca {

/// Memory of a GPU from which tables are taken, because allocating it later may wait for kernels that run.
class table_memory {
 public:
    static constexpr std::size_t bytes = std::size_t{32} << 20;

    /// A device without memory of its own has none.
    explicit table_memory(const device& device);

    /// Address of free bytes; nullptr if there are not enough.
    void* take(std::size_t size);
    void give_back(void* address);

 private:
    std::mutex mutex_;
    std::optional<memory> memory_;
    std::map<std::size_t, std::size_t> taken_; ///< end of each part, by its begin
};

/// A table that the host writes once and kernels read: in the GPU's own memory, else in memory of the host.
class kernel_table {
 public:
    kernel_table() = default;
    /// @throws weftio::error errc::out_of_memory
    kernel_table(const device& device, std::shared_ptr<table_memory> from, std::size_t size);
    template <class T>
    static kernel_table of(const device& device, std::shared_ptr<table_memory> from, const T& content)
    {
        kernel_table table(device, std::move(from), sizeof content);
        const auto* bytes = reinterpret_cast<const std::byte*>(&content);
        table.write({bytes, bytes + sizeof content});
        return table;
    }
    kernel_table(kernel_table&& other) noexcept { *this = std::move(other); }
    kernel_table& operator=(kernel_table&& other) noexcept;
    ~kernel_table();

    explicit operator bool() const { return address_ != nullptr; }
    void* device_address() const { return address_; }
    /// Copies the whole table. Does not wait for kernels.
    void write(const std::vector<std::byte>& content);

 private:
    std::optional<device> device_;
    std::shared_ptr<table_memory> from_; ///< null: `own_`
    memory own_;
    void* address_ = nullptr;
};

} // namespace weftio::doca
