// Memory regions registered with a NIC, as a responder accesses them.
#pragma once

#include <cstddef>

#include "keys/queue_keys.hpp"
#include "roce/remote_memory.hpp"

namespace weftio::roce {

/// The regions of one protection domain. Memory that the CPU cannot access is refused as out_of_reach; it needs a
/// staging buffer elsewhere. A peer cannot invalidate the key of a region.
class key_memory final : public remote_memory {
 public:
    /// @param nic  its keys; must outlive this
    key_memory(const keys::nic_keys& nic, protection_domain domain) noexcept : nic_(nic), keys_(nic, domain) {}

    refusal check(const remote_range& range, access needed) override;
    refusal write(const remote_range& range, std::span<const std::uint8_t> bytes) override;
    refusal read(const remote_range& range, std::span<const std::uint8_t>& bytes) override;
    refusal word(std::uint32_t key, std::uint64_t address, std::uint64_t*& word) override;
    refusal invalidate(std::uint32_t key) override;

 private:
    refusal find(const remote_range& range, access needed, std::byte*& at) const noexcept;

    const keys::nic_keys& nic_;
    const keys::queue_keys keys_;
};

} // namespace weftio::roce
