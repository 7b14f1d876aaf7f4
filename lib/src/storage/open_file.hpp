// A descriptor of the caller's, as an engine knows it.
#pragma once

#include <cstdint>
#include <memory>

#include "storage/context.hpp"

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
    context& engine() const noexcept { return *engine_; }

 private:
    open_file(std::shared_ptr<context> engine, int descriptor);

    std::shared_ptr<context> engine_;
    const int descriptor_;
    bool direct_ = false;
    std::uint32_t key_ = 0;
};

} // namespace weftio::storage
