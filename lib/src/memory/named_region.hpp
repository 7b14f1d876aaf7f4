// Memory under a key, and the NICs that have been told of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/process.hpp"
#include "nic/backend.hpp"
#include "weftio/memory.hpp"

namespace weftio::detail {

/// Whether entries may name memory, or only NICs themselves use it.
enum class region_use { entries, own };

/// The destructor waits for each NIC in turn, as nic::region says.
class named_region {
 public:
    /// @throws weftio::error errc::out_of_memory all keys are taken
    named_region(std::shared_ptr<const memory_block> block, region_use use, const region_options& options);
    named_region(const named_region&) = delete;
    named_region& operator=(const named_region&) = delete;
    ~named_region();

    /// Nothing when the NIC has been told already. @throws weftio::error as nic::memory_user::register_memory
    void register_with(nic::memory_user& nic);
    /// In host byte order; 0: entries cannot name it.
    std::uint32_t lkey() const noexcept { return key_; }
    const memory_block& block() const noexcept { return *block_; }
    /// No NIC takes the key any more.
    void revoke() noexcept;

 private:
    const maker maker_{};
    const std::shared_ptr<const memory_block> block_;
    const protection_domain domain_;
    std::uint32_t key_ = 0;
    bool withdrawn_ = false;
    struct at_nic {
        const nic::memory_user* nic; ///< which the region there keeps
        std::unique_ptr<nic::region> region;
    };
    std::vector<at_nic> nics_;
};

} // namespace weftio::detail
