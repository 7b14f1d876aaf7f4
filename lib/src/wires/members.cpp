#include "wires/members.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "weftio/error.hpp"

namespace weftio::wires {

namespace {

/// Reads a part of the file. Not through a mapping, which would be lost if the file were made anew meanwhile.
template <class T>
bool read_at(int descriptor, std::size_t offset, T& into) noexcept
{
    return ::pread(descriptor, static_cast<void*>(&into), sizeof into, static_cast<off_t>(offset)) == sizeof into;
}

member_facts facts_of(unsigned slot, const slot_state& state) noexcept
{
    constexpr auto relaxed = std::memory_order_relaxed;
    member_facts facts{.slot = slot,
                       .address = mac_of(slot, state.life.load(relaxed)),
                       .process = state.process.load(relaxed),
                       .first_queue = state.first_queue.load(relaxed),
                       .queues = state.queues.load(relaxed),
                       .first_address = {}};
    const std::array<std::uint64_t, 2> halves{state.address[0].load(relaxed), state.address[1].load(relaxed)};
    std::memcpy(facts.first_address.data(), halves.data(), sizeof halves);
    return facts;
}

} // namespace

mac mac_of(unsigned slot, std::uint32_t life) noexcept
{
    const std::uint32_t joined = (life + 1) / 2;
    return {0x02,
            0x57,
            static_cast<std::uint8_t>(joined >> 16),
            static_cast<std::uint8_t>(joined >> 8),
            static_cast<std::uint8_t>(joined),
            static_cast<std::uint8_t>(slot)};
}

std::vector<member_facts> members_of(int descriptor, unsigned own)
{
    std::vector<member_facts> members;
    std::uint64_t magic = 0;
    std::uint32_t version = 0;
    std::array<slot_state, most_members> slots{};
    if (!read_at(descriptor, offsetof(head, magic), magic) || magic != head::right_magic ||
        !read_at(descriptor, offsetof(head, version), version) || version != head::this_version ||
        !read_at(descriptor, offsetof(head, slots), slots))
        return members;
    for (unsigned slot = 0; slot != most_members; ++slot)
        if (slots[slot].life.load(std::memory_order_relaxed) % 2 == 1 && (slot == own || is_held(descriptor, slot)))
            members.push_back(facts_of(slot, slots[slot]));
    return members;
}

std::vector<member_facts> members_of(std::string_view name, const std::string& folder)
{
    const std::string who = fmt::format("wire {}", name);
    const std::string path = path_of(who, name, folder);
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0 && errno == EACCES)
        throw error(errc::permission_denied, fmt::format("weftio: {}: {} cannot be read: {}; run as its owner", who,
                                                         path, std::strerror(errno)));
    if (descriptor < 0)
        return {};
    std::vector<member_facts> members;
    try {
        members = members_of(descriptor);
    } catch (...) { // no memory
        ::close(descriptor);
        throw;
    }
    ::close(descriptor);
    return members;
}

} // namespace weftio::wires
