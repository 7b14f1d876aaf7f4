// What NICs and peers may do with memory.
#pragma once

#include <cstdint>

namespace weftio {

/// Rights of NICs on a region, in addition to reading what is sent from it. The values are those of libibverbs. A peer
/// has the rights that both the region and the rdma_queue grant. POSIX has a function access(): after `using
/// weftio::access`, write `weftio::access` for the type.
enum class access : std::uint8_t {
    none = 0,
    local_write = 1,   ///< the NIC may write received data
    remote_write = 2,  ///< a peer may write; needs local_write
    remote_read = 4,   ///< a peer may read
    remote_atomic = 8, ///< a peer may execute atomics; needs local_write
    bind = 16,         ///< queue pairs may bind memory windows to the region (weftio/memory_window.hpp)
};
constexpr access operator|(access a, access b) noexcept
{
    return static_cast<access>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr access operator&(access a, access b) noexcept
{
    return static_cast<access>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}

/// The types of memory windows (InfiniBand specification, 10.6.7.2). memory_window says what each may do.
enum class window_type : std::uint8_t {
    type_1 = 1, ///< any queue pair of the domain binds it, and peers of any of them access it
    type_2 = 2, ///< only peers of the queue pair that has bound it access it
};

/// Isolates queues and regions from those of other domains: a queue may use regions of its own domain only. An entry
/// that names a region of another domain fails like one with a wrong key.
///
/// - Ownership: a number that is cheap to copy; nothing has to be closed.
/// - Threads: any.
class protection_domain {
 public:
    /// The default domain of the process, for all objects that name no other.
    constexpr protection_domain() noexcept = default;
    /// A new domain, which is not equal to any other domain of the process, past or future.
    static protection_domain make() noexcept;

    friend constexpr bool operator==(protection_domain, protection_domain) noexcept = default;

 private:
    constexpr explicit protection_domain(std::uint64_t number) noexcept : number_(number) {}

    std::uint64_t number_ = 0;
};

/// What a memory_window is at one moment.
struct memory_window_standing {
    /// The key by which peers name the bytes. Of a free window: its last key, or the one that its first bind names.
    std::uint32_t rkey = 0;
    window_type type = window_type::type_2;
    bool bound = false;
    std::uint32_t region = 0; ///< key of the region that it is bound to; 0: it is free
    protection_domain domain{};
};

} // namespace weftio
