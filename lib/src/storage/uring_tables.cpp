#include "storage/uring_tables.hpp"

namespace weftio::storage {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

} // namespace

uring_tables::uring_tables(io_uring& ring, registrations& of) : ring_(ring), of_(of)
{
    of_.join(*this);
}

uring_tables::~uring_tables()
{
    of_.leave(*this);
    int files = 0, buffers = 0;
    for (unsigned slot = 0; slot < slots; ++slot) {
        files -= files_[slot].load(relaxed) != 0;
        buffers -= memories_[slot].load(relaxed) != 0;
    }
    of_.count(files, buffers);
}

int uring_tables::file(std::uint64_t name, int descriptor) noexcept
{
    if (name == 0)
        return -1;
    const auto slot = static_cast<unsigned>(name % slots);
    const std::uint64_t held = files_[slot].load(relaxed);
    if (held == name)
        return static_cast<int>(slot);
    if (held != 0 || files_status_ < 0)
        return -1;
    if (ios_ < ios_before) {
        ++ios_;
        return -1;
    }
    return enter_file(slot, name, descriptor);
}

/// Under the mutex: whether there is a table, made now if need be.
bool uring_tables::has_table(int& status, int (*make)(io_uring*, unsigned), const char* what) noexcept
{
    if (status == 1)
        status = make(&ring_, slots);
    if (status < 0)
        of_.refused(what, -status);
    return status == 0;
}

int uring_tables::enter_file(unsigned slot, std::uint64_t name, int descriptor) noexcept
{
    const std::lock_guard lock(of_.mutex);
    if (!has_table(files_status_, io_uring_register_files_sparse, "files") ||
        io_uring_register_files_update(&ring_, slot, &descriptor, 1) != 1)
        return -1;
    files_[slot].store(name, relaxed);
    of_.count(1, 0);
    return static_cast<int>(slot);
}

int uring_tables::memory(std::uint64_t name, std::size_t bytes) noexcept
{
    if (name == 0)
        return -1;
    of_.keep_up();
    const auto slot = static_cast<unsigned>(name % slots);
    const std::uint64_t held = memories_[slot].load(relaxed);
    if (held == name)
        return static_cast<int>(slot);
    if (held != 0 || memories_status_ < 0)
        return -1;
    candidate& which = candidates_[slot];
    if (which.name != name)
        which = {.name = name};
    which.moved += bytes;
    return which.refused || which.moved < which.whole ? -1 : enter_memory(slot, which);
}

int uring_tables::enter_memory(unsigned slot, candidate& which) noexcept
{
    const std::lock_guard lock(of_.mutex);
    const registrations::range range = of_.find(which.name);
    which.whole = range.bytes;
    which.refused = range.bytes == 0 || range.bytes > most_bytes;
    if (which.refused || which.moved < which.whole ||
        !has_table(memories_status_, io_uring_register_buffers_sparse, "memory"))
        return -1;
    if (!of_.watch(which.name)) { // first: from now on nothing that happens to it is missed
        which.refused = true;
        return -1;
    }
    const iovec at{.iov_base = range.first, .iov_len = range.bytes};
    const __u64 tag = 0;
    const int status = io_uring_register_buffers_update_tag(&ring_, slot, &at, &tag, 1);
    if (status != 1) {
        which.refused = true;
        of_.refused("memory", -status);
        return -1;
    }
    which.moved = 0; // if it changes, it is registered again after as many bytes
    memories_[slot].store(which.name, relaxed);
    of_.count(0, 1);
    return static_cast<int>(slot);
}

void uring_tables::drop_file(std::uint64_t name) noexcept
{
    const auto slot = static_cast<unsigned>(name % slots);
    if (files_[slot].load(relaxed) != name)
        return;
    const int none = -1;
    io_uring_register_files_update(&ring_, slot, &none, 1);
    files_[slot].store(0, relaxed);
    of_.count(-1, 0);
}

void uring_tables::drop_memory(std::uint64_t name) noexcept
{
    const auto slot = static_cast<unsigned>(name % slots);
    if (memories_[slot].load(relaxed) != name)
        return;
    const iovec none{};
    const __u64 tag = 0;
    io_uring_register_buffers_update_tag(&ring_, slot, &none, &tag, 1);
    memories_[slot].store(0, relaxed);
    of_.count(0, -1);
}

} // namespace weftio::storage
