// A memory window of the software NIC: an index in the key table that this port was granted.
#pragma once

#include <cstdint>
#include <memory>

#include "nic/soft/soft_port.hpp"

namespace weftio::nic::soft {

class soft_window final : public window {
 public:
    /// @throws weftio::error errc::out_of_memory
    soft_window(std::shared_ptr<soft_port> port, window_type type, protection_domain domain);
    soft_window(const soft_window&) = delete;
    soft_window& operator=(const soft_window&) = delete;
    ~soft_window() override;

    memory_window_standing standing() const noexcept override;

 private:
    const std::shared_ptr<soft_port> port_;
    const std::uint32_t key_; ///< its first key
};

} // namespace weftio::nic::soft
