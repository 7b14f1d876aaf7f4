// A region: memory under a key, and the NICs that it is registered with.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/process.hpp"
#include "keys/key_table.hpp"
#include "nic/backend.hpp"
#include "weftio/memory.hpp"

namespace weftio::regions {

/// Pieces of equal length in a region.
struct pieces {
    std::uint64_t count, bytes, stride_bytes, offset_bytes;
};
/// @param who  what the error begins with, "buf_arr"
/// @throws weftio::error errc::invalid_argument a piece is not within the region; errc::not_reachable the region's
///         memory is another device's
void require_within(std::string_view who, const memory_region& region, const device& device, const pieces& wanted);

/// entries: entries may name the memory by a key. own: only NICs themselves use it, and it has no key.
enum class region_use { entries, own };

/// Memory under a key. The destructor takes it from each NIC in turn, and blocks as the destructor of nic::region does.
class named_region {
 public:
    /// @throws weftio::error errc::out_of_memory all keys are taken
    named_region(std::shared_ptr<const devices::memory_block> block, region_use use, const region_options& options);
    named_region(const named_region&) = delete;
    named_region& operator=(const named_region&) = delete;
    ~named_region();

    /// Gives the memory another key, for other rights, another range or another domain. Every NIC refuses the old key
    /// when this returns, and uses no address that it has found by it. Blocks for a turn of each engine, and for copies
    /// that devices have begun. @pre the region has a key; check_range()
    void rereg(const region_options& options, std::size_t offset, std::size_t bytes);
    /// Puts other memory in the place of the present one, under the same key, which NICs refuse meanwhile. Blocks as
    /// rereg(). @pre the region has a key
    /// @throws weftio::error see nic::memory_user::register_memory(); nothing has changed then
    void replace(std::shared_ptr<const devices::memory_block> block, const region_options& options);
    /// Registers the memory with a NIC. Does nothing when it is registered there already.
    /// @throws weftio::error see nic::memory_user::register_memory()
    void register_with(nic::memory_user& nic);
    /// The key at the NIC that it was registered with first, or the process's key before; in host byte order. 0:
    /// entries cannot name the memory.
    std::uint32_t lkey() const noexcept { return nics_.empty() ? at_.process_key : nics_.front().region->key(); }
    /// Nothing: it is not registered with that NIC.
    std::optional<std::uint32_t> lkey(const nic::memory_user& nic) const noexcept;
    std::uint32_t process_key() const noexcept { return at_.process_key; }
    const devices::memory_block& block() const noexcept { return *block_; }
    const std::shared_ptr<const devices::memory_block>& share() const noexcept { return block_; }
    /// What entries may name: where it begins in the block, how much it is, and by which address they name its begin.
    std::size_t offset() const noexcept { return at_.offset; }
    std::size_t bytes() const noexcept { return at_.bytes; }
    std::uint64_t iova() const noexcept { return at_.address; }
    access rights() const noexcept { return at_.rights; }
    /// Whether its key was withdrawn for good.
    bool closed() const noexcept { return withdrawn_; }
    /// Memory windows that are bound to it.
    std::uint32_t windows() const noexcept;
    /// From now on, no window can be bound to it. @param who  "close", for the error text
    /// @throws weftio::error errc::in_use some are bound to it
    void require_no_windows(std::string_view who) const;
    /// Withdraws the key: every NIC refuses it from now on.
    void revoke() noexcept;

 private:
    void take_in(const region_options& options, std::size_t offset, std::size_t bytes) noexcept;
    keys::key_entry entry() const noexcept;

    const core::maker maker_{};
    std::shared_ptr<const devices::memory_block> block_;
    nic::region_request at_;
    bool withdrawn_ = false;
    struct at_nic {
        nic::memory_user* nic; ///< `region` keeps the NIC alive
        std::unique_ptr<nic::region> region;
    };
    std::vector<at_nic> nics_;
};

} // namespace weftio::regions
