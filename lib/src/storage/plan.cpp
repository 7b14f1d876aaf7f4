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
    made.zones[0] = {at.middle, at.behind, fd, staged, file.offset_align()};
    if (at.middle == at.begin && at.behind == at.end)
        return;
    const int buffered = file.buffered();
    if (buffered < 0) {
        made.error = EINVAL; // what pwrite says of it
        return;
    }
    made.zones[1] = {at.begin, at.middle, buffered, device, 1};
    made.zones[2] = {at.behind, at.end, buffered, device, 1};
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
    if (memory.device)
        tell(made, file_fall::no_direct);
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
        made.zones[0] = {offset, offset + bytes, fd, memory.device != nullptr, 1};
        return made;
    }
    tell(made, unaligned);
    const edges at = edges_of(offset, offset + bytes, align);
    what == io::kind::read ? plan_direct_read(made, file, fd, address, at)
                           : plan_direct_write(made, file, fd, address, at);
    return made;
}

} // namespace weftio::storage
