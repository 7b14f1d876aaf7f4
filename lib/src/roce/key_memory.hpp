// Memory regions registered with a NIC, as a responder accesses them.
#pragma once

#include <cstddef>

#include "keys/held_windows.hpp"
#include "keys/resolve.hpp"
#include "roce/remote_memory.hpp"
#include "roce/staged_memory.hpp"

namespace weftio::roce {

/// The regions and windows that the peer of one queue pair may access. Memory that the CPU cannot access is staged, or
/// refused as out_of_reach; atomics there are refused as staged_atomic. A peer can invalidate the keys of windows of
/// type 2 only.
class key_memory final : public remote_memory {
 public:
    /// @param nic   its keys; must outlive this
    /// @param held  counts the windows of type 2A of the queue pair; nullptr: it has none
    /// @param staged  copies to and from memory that the CPU cannot access; nullptr: nobody does
    key_memory(const keys::nic_keys& nic, const keys::window_user& queue_pair, keys::held_windows* held = nullptr,
               staged_memory* staged = nullptr) noexcept
        : nic_(nic), for_(queue_pair), held_(held), staged_(staged)
    {}

    refusal check(const remote_range& range, access needed) override;
    refusal write(const remote_range& range, std::span<const std::uint8_t> bytes) override;
    refusal read(const remote_range& range, std::span<const std::uint8_t>& bytes) override;
    refusal word(std::uint32_t key, std::uint64_t address, std::uint64_t*& word) override;
    refusal may_invalidate(std::uint32_t key) override;
    void invalidate(std::uint32_t key) override;
    /// Whether the CPU cannot access the bytes, which the peer may access, and copies reach them.
    bool is_staged(const remote_range& range, access needed) const noexcept;

 private:
    refusal check_staged(const remote_range& range, access needed) const noexcept;
    refusal write_staged(const remote_range& range, std::span<const std::uint8_t> bytes);
    refusal read_staged(const remote_range& range, std::span<const std::uint8_t>& bytes);
    refusal find_staged(const remote_range& range, access needed, keys::located& found) const noexcept;
    refusal find(const remote_range& range, access needed, std::byte*& at) const noexcept;

    const keys::nic_keys& nic_;
    const keys::window_user for_;
    keys::held_windows* const held_;
    staged_memory* const staged_;
};

} // namespace weftio::roce
