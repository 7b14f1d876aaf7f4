// One entry of an RDMA queue, decoded and checked (docs/formats.md, "Entries").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "keys/queue_keys.hpp"
#include "nic/soft/work/entry.hpp"
#include "roce/send_entries.hpp"

namespace weftio::nic::soft {

/// Some local bytes of a message: named by a key, or inline in the entry.
struct local_piece {
    const std::uint8_t* inlined = nullptr; ///< nullptr: key and address are valid
    std::uint32_t key = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

/// Reads a pointer segment. A byte count of 0 means 2^31.
local_piece piece_of(const weftio_wqe_data_segment& pointer) noexcept;

/// Bytes [offset, offset + bytes) of a message. A walk over the data segments cuts them into pieces.
struct byte_window {
    std::uint64_t offset = 0, bytes = 0;

    bool empty() const noexcept { return bytes == 0; }
    /// Shortens `piece` to the part inside the window, and moves the window past it. @return false: no part of it is
    /// inside
    bool cut(local_piece& piece) noexcept;
};

/// Iterates over the data segments of an entry. The entry must outlive it: inline pieces point into the entry.
class data_segments {
 public:
    /// @param first  index of the first data segment
    data_segments(const entry& entry, std::uint32_t first) noexcept : entry_(entry), at_(first) {}

    bool more() const noexcept { return at_ < entry_.segments; }
    /// Returns the next data segment in `out`. @pre more()  @return wrong_size: it exceeds the entry
    refusal next(local_piece& out) noexcept;

 private:
    const entry& entry_;
    std::uint32_t at_;
};

/// Finds the memory of a piece that is not inline, and checks key, domain, rights and range.
refusal find(const local_piece& piece, const keys::queue_keys& keys, access needed, std::byte*& at) noexcept;

/// An entry as the transport sees it.
struct rdma_entry {
    roce::send_request& request;
    std::uint32_t first_data = 1; ///< index of the first data segment

    /// Whether the peer's answer is written to local memory.
    bool scatters() const noexcept
    {
        return request.operation == net::roce_operation::read_request ||
               request.operation == net::roce_operation::compare_swap ||
               request.operation == net::roce_operation::fetch_add;
    }
};

/// Decodes an entry, and checks all its memory. Does not change the fields `more` and `fingerprint`.
refusal read_rdma(const entry& entry, const keys::queue_keys& keys, rdma_entry& out) noexcept;

/// Sum of all bytes of an entry.
std::uint32_t fingerprint_of(const entry& entry) noexcept;

} // namespace weftio::nic::soft
