#include "nic/soft/files/file_entry.hpp"

#include <algorithm>

#include "storage/open_file.hpp"

namespace weftio::nic::soft {

namespace {

constexpr std::uint32_t segments_of_a_sync = 2, segments_of_a_transfer = 3;

/// Finds the memory that a transfer reads or writes.
refusal read_memory(const entry& entry, const keys::queue_keys& keys, file_entry& out) noexcept
{
    const auto pointer = segment_at<weftio_wqe_data_segment>(entry, 2);
    const std::uint32_t count = weftio_swap32(pointer.byte_count_be);
    if (count & WEFTIO_INLINE_SEGMENT)
        return refusal::wrong_segment;
    out.bytes = count == 0 ? std::uint64_t{1} << 31 : count;
    out.memory_key = weftio_swap32(pointer.lkey_be);
    const access needed = out.what == storage::io::kind::read ? access::local_write : access::none;
    keys::located found;
    if (const refusal why = keys.resolve(out.memory_key, weftio_swap64(pointer.address_be), out.bytes, needed, found);
        why != refusal::none)
        return why;
    out.at = found.cpu ? found.cpu : reinterpret_cast<std::byte*>(found.device_address);
    out.device = found.cpu ? nullptr : found.device;
    out.owner = found.device;
    out.by = found.by;
    return refusal::none;
}

} // namespace

file_fall file_entry::fall() const noexcept
{
    if (device)
        return file_fall::no_direct;
    if (!file.direct || what == storage::io::kind::sync)
        return file_fall::none;
    if (offset % align() != 0)
        return file_fall::offset;
    if (reinterpret_cast<std::uintptr_t>(at) % file.memory_align != 0)
        return file_fall::address;
    return bytes % align() != 0 ? file_fall::size : file_fall::none;
}

std::uint32_t file_entry::align() const noexcept
{
    constexpr std::uint32_t page = 4096;
    if (!file.direct)
        return 1;
    return what == storage::io::kind::write ? std::max(page, file.offset_align) : file.offset_align;
}

int file_entry::descriptor_for(std::uint64_t from, std::uint32_t count, const std::byte* address) const noexcept
{
    if (!file.direct || what == storage::io::kind::sync ||
        (from % align() == 0 && count % align() == 0 &&
         reinterpret_cast<std::uintptr_t>(address) % file.memory_align == 0))
        return file.descriptor;
    const int buffered = file.direct->buffered();
    return buffered >= 0 ? buffered : file.descriptor;
}

refusal read_file_entry(const entry& entry, const file_keys& files, const keys::queue_keys& keys,
                        file_entry& out) noexcept
{
    switch (entry.opcode) {
        case WEFTIO_OPCODE_RDMA_READ: out.what = storage::io::kind::read; break;
        case WEFTIO_OPCODE_RDMA_WRITE: out.what = storage::io::kind::write; break;
        case WEFTIO_OPCODE_FILE_SYNC: out.what = storage::io::kind::sync; break;
        default: return refusal::unknown_opcode;
    }
    const bool syncs = out.what == storage::io::kind::sync;
    if (entry.segments != (syncs ? segments_of_a_sync : segments_of_a_transfer))
        return refusal::wrong_size;
    const auto remote = segment_at<weftio_wqe_remote_segment>(entry, 1);
    const std::uint32_t modes = entry.words[2] >> 24;
    out.waits_for_all = syncs || (modes & 0xe0) >= WEFTIO_FENCE;
    out.file_key = weftio_swap32(remote.rkey_be);
    out.offset = weftio_swap64(remote.address_be);
    if (!files.find(out.file_key, out.file))
        return refusal::unknown_file;
    if (!syncs)
        return read_memory(entry, keys, out);
    out.bytes = 0;
    out.at = nullptr;
    out.device = out.owner = nullptr;
    out.memory_key = 0;
    return refusal::none;
}

} // namespace weftio::nic::soft
