#include "nodes.hpp"

#include <cerrno>

#include <sys/mman.h>

#include "real.hpp"

namespace weftio::verbs::preload {

constinit std::atomic<node_page*> node_table[node_pages];

namespace {

/// The entry for a node; never 0. Inodes of sockets have 32 bits.
std::uint64_t note_of(const struct stat& file, unsigned device) noexcept
{
    return std::uint64_t{1} << 63 | std::uint64_t{device} << 32 | static_cast<std::uint32_t>(file.st_ino);
}

unsigned device_in(std::uint64_t note) noexcept
{
    return static_cast<unsigned>(note >> 32) & 0x7fff'ffff;
}

/// nullptr: the page has not been allocated.
std::atomic<std::uint64_t>* find(int descriptor) noexcept
{
    const auto number = static_cast<unsigned>(descriptor);
    if (number >= page_numbers * node_pages)
        return nullptr;
    node_page* const page = node_table[number / page_numbers].load(std::memory_order_acquire);
    return page == nullptr ? nullptr : &(*page)[number % page_numbers];
}

/// nullptr, with errno: no memory, or the number is too high.
std::atomic<std::uint64_t>* find_or_make(int descriptor) noexcept
{
    if (auto* const there = find(descriptor))
        return there;
    const auto number = static_cast<unsigned>(descriptor);
    if (number >= page_numbers * node_pages) {
        errno = EMFILE;
        return nullptr;
    }
    void* const memory =
        real().mmap(nullptr, sizeof(node_page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return nullptr;
    node_page* nobodys = nullptr;
    if (!node_table[number / page_numbers].compare_exchange_strong(nobodys, static_cast<node_page*>(memory)))
        munmap(memory, sizeof(node_page));
    return find(descriptor);
}

/// Whether the descriptor still matches the entry.
bool holds(std::uint64_t note, int descriptor) noexcept
{
    if (note == 0)
        return false;
    const int error = errno;
    struct stat file;
    const bool there = real().fstat(descriptor, &file) == 0;
    errno = error;
    return there && S_ISSOCK(file.st_mode) && note_of(file, device_in(note)) == note;
}

/// Calls `visit(number, entry)` for the entries of [first, last] that are not 0, until it returns true.
template <class Visitor>
bool any_of(unsigned first, unsigned last, Visitor visit) noexcept
{
    for (unsigned number = first; number <= last && number < page_numbers * node_pages; ++number) {
        auto* const entry = find(static_cast<int>(number));
        if (entry == nullptr)
            number |= page_numbers - 1; // the last number of the page
        else if (entry->load(std::memory_order_relaxed) != 0 && visit(static_cast<int>(number), *entry))
            return true;
    }
    return false;
}

} // namespace

int node_of(int descriptor) noexcept
{
    const auto* const entry = find(descriptor);
    const std::uint64_t note = entry == nullptr ? 0 : entry->load(std::memory_order_relaxed);
    return holds(note, descriptor) ? static_cast<int>(device_in(note)) : -1;
}

bool remember_node(int descriptor, unsigned device) noexcept
{
    auto* const entry = find_or_make(descriptor);
    struct stat file;
    if (entry == nullptr || real().fstat(descriptor, &file) != 0)
        return false;
    entry->store(note_of(file, device), std::memory_order_relaxed);
    return true;
}

bool copy_node(int from, int to) noexcept
{
    const auto* const source = find(from);
    const std::uint64_t note = source == nullptr ? 0 : source->load(std::memory_order_relaxed);
    auto* const entry = note == 0 ? find(to) : find_or_make(to);
    if (entry != nullptr)
        entry->store(note, std::memory_order_relaxed);
    return entry != nullptr || note == 0;
}

void forget_node(int descriptor) noexcept
{
    if (auto* const entry = find(descriptor))
        entry->store(0, std::memory_order_relaxed);
}

bool has_nodes(unsigned first, unsigned last) noexcept
{
    return any_of(first, last,
                  [](int number, auto& entry) { return holds(entry.load(std::memory_order_relaxed), number); });
}

void forget_closed_nodes(unsigned first, unsigned last) noexcept
{
    any_of(first, last, [](int number, std::atomic<std::uint64_t>& entry) {
        std::uint64_t note = entry.load(std::memory_order_relaxed);
        if (!holds(note, number))
            entry.compare_exchange_strong(note, 0, std::memory_order_relaxed);
        return false;
    });
}

} // namespace weftio::verbs::preload
