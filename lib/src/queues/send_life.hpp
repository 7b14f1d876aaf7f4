// The memory of a send queue of any kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "queues/ring_life.hpp"
#include "weftio/device/queue/send.h"

namespace weftio::queues {

/// Offsets in the memory of a send ring: the entries, then completion and doorbell record, each on a cache line of its
/// own (docs/formats.md).
struct ring_layout {
    std::size_t completion, dbrec, bytes;

    explicit ring_layout(std::size_t entries)
        : completion(entries * WEFTIO_WQE_BLOCK_BYTES), dbrec(completion + 64), bytes(dbrec + 64)
    {}
};

/// Options of a send ring; nic::send_ring describes each.
struct send_ring_options {
    std::uint32_t entries = 0;
    std::uint64_t horizon_ns = 0;
    protection_domain domain{};
    std::uint32_t abi = 0;       ///< of the handle: what kind of queue it is
    std::uint32_t checksums = 0; ///< WEFTIO_ETH_*_CHECKSUM, in each entry that sends a frame
    bool needs_flush = false;    ///< of queue pairs: needs_flush()
    bool results = false;        ///< a word for the result of each entry lies behind the ring
};

/// Checks the number of entries of a ring. @param who  kind of the queue, for the error text: "eth_txq"
/// @param option  name of the option
/// @throws weftio::error errc::invalid_argument `entries` is not a power of two in 64..32768
void require_send_entries(std::string_view who, std::uint32_t entries, std::string_view option = "entries");

/// One life of the ring of a send queue of any kind.
class send_life final : public ring_life<weftio_dev_send_queue, nic::send_queue> {
 public:
    /// @param control  shared with other rings; nullptr: its own
    send_life(const device& device, const send_ring_options& options, control_block control = {});

    /// Initializes the ring: no entry is written, none is completed. Returns what the NIC needs of it.
    nic::send_ring begin() const;
    /// The collapsed completion, as kernels see it.
    const weftio_cqe* completion() const { return device_at<weftio_cqe>(layout_.completion); }

 private:
    weftio_dev_send_queue make_handle() const override;

    const send_ring_options options_;
    const ring_layout layout_;
    const memory filled_;
};

} // namespace weftio::queues
