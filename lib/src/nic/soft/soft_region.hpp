// A region of the software NIC: memory that its device may read, and that entries may name.
#pragma once

#include <cstdint>
#include <memory>

#include "nic/soft/send/send_headers.hpp"
#include "nic/soft/soft_port.hpp"

namespace weftio::nic::soft {

class soft_region final : public region {
 public:
    /// @throws weftio::error errc::not_supported the CPU cannot access the memory, and its device has no copy engine;
    ///   errc::out_of_memory
    soft_region(std::shared_ptr<soft_port> port, const region_request& wanted);
    soft_region(const soft_region&) = delete;
    soft_region& operator=(const soft_region&) = delete;
    ~soft_region() override;

    std::uint32_t key() const noexcept override { return key_; }
    void revoke() noexcept override;
    void renew(const region_request& now) noexcept override;

 private:
    std::shared_ptr<soft_port> port_;
    frame_memory_list memory_;
    std::uint32_t key_; ///< 0: the region has no key
    bool granted_ = false;
};

} // namespace weftio::nic::soft
