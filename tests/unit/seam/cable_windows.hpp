// The memory windows of the cable NIC: docs/formats.md, "Windows". They share no code with those of the software NIC,
// but for the count that a region is asked for (keys::key_table::hold()).
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "cable_rdma.hpp"

namespace weftio::test {

/// A queue pair, as windows see it.
struct cable_window_user {
    std::uint32_t queue = 0;
    protection_domain domain{};
    nic::window_options how{};
};

class cable_window final : public nic::window {
 public:
    /// @param tables  lives as long as `port`
    cable_window(std::shared_ptr<nic::backend> port, cable_tables& tables, window_type type, protection_domain domain);
    ~cable_window() override;
    memory_window_standing standing() const noexcept override;

    // The caller holds the mutex of the tables.
    /// Executes an entry that binds or frees it. @param words  of the entry, in host byte order
    /// @return whether all of its rules are kept; else it is as it was
    bool change(const std::array<std::uint32_t, 256>& words, std::uint32_t segments, const cable_window_user& by);
    /// What `by` and its peer may invalidate.
    bool may_free(std::uint32_t key, const cable_window_user& by) const;
    void free();
    /// The bytes that a peer of `by` names; nullptr: it may not.
    std::uint8_t* find(std::uint32_t key, std::uint64_t address, std::uint64_t count, access rights,
                       const cable_window_user& by) const;
    bool is_of(std::uint32_t region) const { return bound_ && region_ == region; }
    /// Whether it keeps the queue pair from being closed.
    bool keeps(std::uint32_t queue) const { return bound_ && is_2a_ && user_ == queue; }

 private:
    struct asked_bind;
    bool bind(const asked_bind& asked, const cable_window_user& by);
    const nic::region_request* region_for(const asked_bind& asked, const cable_window_user& by) const;
    bool is_reached_by(const cable_window_user& who) const;

    const std::shared_ptr<nic::backend> port_;
    cable_tables& tables_;
    const window_type type_;
    const protection_domain domain_;
    std::uint32_t key_; ///< of a free window, the last one
    bool bound_ = false, is_2a_ = false, has_atomics_ = false;
    std::uint32_t region_ = 0, process_key_ = 0, user_ = 0;
    std::uint64_t begin_ = 0, bytes_ = 0;
    access rights_ = access::none;
};

/// The window of a key, whatever its variant; nullptr: there is none. @pre the caller holds the mutex
cable_window* find_cable_window(const cable_tables& tables, std::uint32_t key);

} // namespace weftio::test
