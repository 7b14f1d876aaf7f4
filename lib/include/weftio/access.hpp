// What NICs and peers may do with memory.
#pragma once

#include <cstdint>

namespace weftio {

/// What NICs may do with memory, beyond reading what is sent from it. Values are those of libibverbs. A peer has the
/// rights that both the region and the rdma_queue give it. Behind `using weftio::access` POSIX has a function of that
/// name: write `weftio::access` for the type.
enum class access : std::uint8_t {
    none = 0,
    local_write = 1,   ///< write there what arrives
    remote_write = 2,  ///< write for a peer; needs local_write
    remote_read = 4,   ///< read for a peer
    remote_atomic = 8, ///< read and change for a peer; needs local_write
};
constexpr access operator|(access a, access b) noexcept
{
    return static_cast<access>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr access operator&(access a, access b) noexcept
{
    return static_cast<access>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}

/// Keeps apart what does not belong together: a queue sends from regions of its own domain only. An entry that names
/// another one's is refused like a wrong key.
///
/// - Ownership: a number that is cheap to copy; nothing has to be closed.
/// - Threads: any.
class protection_domain {
 public:
    /// That of the process, to which everything belongs that names no other.
    constexpr protection_domain() noexcept = default;
    /// A new one: no other has been, or will be, equal to it in this process.
    static protection_domain make() noexcept;

    friend constexpr bool operator==(protection_domain, protection_domain) noexcept = default;

 private:
    constexpr explicit protection_domain(std::uint64_t number) noexcept : number_(number) {}

    std::uint64_t number_ = 0;
};

} // namespace weftio
