#include "storage/plan.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>

namespace weftio::storage {

namespace {

constexpr std::uint64_t page = 4096;

struct edges {
    std::uint64_t begin, middle, behind, end; ///< [middle, behind) is aligned
};

std::uint64_t down(std::uint64_t value, std::uint64_t align)
{
    return value / align * align;
}

edges edges_of(std::uint64_t begin, std::uint64_t end, std::uint64_t align)
{
    const std::uint64_t middle = std::min(down(begin + align - 1, align), end);
    return {begin, middle, std::max(down(end, align), middle), end};
}

/// Why O_DIRECT does not take all of the transfer as it is.
file_fall misalignment(const open_file& file, std::uint64_t align, std::uintptr_t address, std::size_t bytes,
                       std::uint64_t offset)
{
    if (offset % align != 0)
        return file_fall::offset;
    if (address % file.memory_align() != 0)
        return file_fall::address;
    return bytes % align != 0 ? file_fall::size : file_fall::none;
}

/// The first reason of the list that applies.
void tell(plan& made, file_fall reason)
{
    if (reason != file_fall::none && (made.fall == file_fall::none || reason < made.fall))
        made.fall = reason;
}

void plan_direct_read(plan& made, const open_file& file, int fd, std::uintptr_t address, const edges& at)
{
    const std::uint32_t align = file.offset_align();
    const bool staged = address == 0 || (address + (at.middle - at.begin)) % file.memory_align() != 0;
    if (at.middle >= at.behind) { // no aligned block in it
        made.zones[0] = {at.begin, at.end, fd, true, align};
        return;
    }
    made.zones = {{{at.begin, at.middle, fd, true, align},
                   {at.middle, at.behind, fd, staged, align},
                   {at.behind, at.end, fd, true, align}}};
}

void plan_direct_write(plan& made, open_file& file, int fd, std::uintptr_t address, const edges& at)
{
    const bool device = address == 0;
    const bool staged = device || (address + (at.middle - at.begin)) % file.memory_align() != 0;
    made.zones[0] = {at.middle, at.behind, fd, staged, file.offset_align(), write_gate::kind::direct};
    if (at.middle == at.begin && at.behind == at.end)
        return;
    const int buffered = file.buffered();
    if (buffered < 0) {
        made.error = EINVAL; // what pwrite says of it
        return;
    }
    made.zones[1] = {at.begin, at.middle, buffered, device, 1, write_gate::kind::cached};
    made.zones[2] = {at.behind, at.end, buffered, device, 1, write_gate::kind::cached};
}

/// Whether NVIDIA's library is to execute the transfer; sets its use, or tells why it cannot.
bool plan_vendor(plan& made, open_file& file, const place& memory, std::size_t bytes)
{
    const context& engine = file.engine();
    const bool always = engine.options().only == file_way::cufile;
    if (!always && (!memory.device || !engine.vendor_asked() || file.denied()))
        return false;
    if (!always && bytes <= file.posix_at_most()) {
        tell(made, file_fall::too_small);
        return false;
    }
    std::byte* const address = memory.device ? memory.device : memory.cpu;
    made.vendor = {file.vendor(), engine.buffers.base_of(address), memory.owner_of_device()};
    if (made.vendor.file)
        return true;
    tell(made, file_fall::no_vendor_library);
    made.error = always ? ENOTSUP : 0;
    return false;
}

/// Memory of a GPU that neither NVIDIA's library nor a direct way reaches.
void plan_staging(plan& made, const context& engine)
{
    if (made.fall == file_fall::none)
        tell(made, file_fall::no_direct);
    if (!engine.settings.allow_compat_mode)
        made.error = ENOTSUP;
}

} // namespace

plan plan_transfer(open_file& file, io::kind what, const place& memory, std::size_t bytes, std::uint64_t offset)
{
    plan made;
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (bytes > memory.bytes || offset > most || bytes > most - offset) {
        made.error = EINVAL;
        return made;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(memory.cpu); // 0: of a device
    if (plan_vendor(made, file, memory, bytes)) {
        const bool gated = what == io::kind::write && file.mixes(); // whether it avoids the page cache is its own
        made.zones[0] = {offset,
                         offset + bytes,
                         file.descriptor(),
                         false,
                         1,
                         gated ? write_gate::kind::direct : write_gate::kind::none};
        tell(made, memory.fall);
        return made;
    }
    if (memory.device)
        plan_staging(made, file.engine());
    made.by_threads = bytes <= file.posix_at_most();
    tell(made, memory.fall);
    const std::uint64_t align =
        what == io::kind::read ? file.offset_align() : std::max<std::uint64_t>(file.offset_align(), page);
    const file_fall unaligned =
        misalignment(file, align, reinterpret_cast<std::uintptr_t>(memory.device) + address, bytes, offset);
    int fd = file.descriptor();
    made.direct = file.direct();
    if (!made.direct && file.wants_direct(bytes) && unaligned == file_fall::none) {
        const int second = file.second_direct();
        made.direct = second >= 0;
        made.direct ? void(fd = second) : tell(made, file_fall::no_o_direct);
    }
    if (!made.direct) {
        const bool gated = what == io::kind::write && file.mixes();
        made.zones[0] = {offset, offset + bytes,
                         fd,     memory.device != nullptr,
                         1,      gated ? write_gate::kind::cached : write_gate::kind::none};
        return made;
    }
    tell(made, unaligned);
    const edges at = edges_of(offset, offset + bytes, align);
    what == io::kind::read ? plan_direct_read(made, file, fd, address, at)
                           : plan_direct_write(made, file, fd, address, at);
    return made;
}

void choose_way(plan& made, file_way of_queue, const context& engine)
{
    const bool threads = made.by_threads && of_queue == file_way::uring;
    made.way = made.vendor.file ? file_way::cufile : threads ? file_way::posix : of_queue;
    if (threads)
        tell(made, file_fall::too_small);
    if (made.fall == file_fall::none && !made.vendor.file)
        made.fall = engine.without_uring();
    if (engine.options().strict && made.fall != file_fall::none)
        made.error = ENOTSUP;
    if (made.error != 0)
        made.way = file_way::none;
}

} // namespace weftio::storage
