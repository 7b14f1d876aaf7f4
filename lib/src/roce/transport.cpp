#include "roce/transport.hpp"

#include "core/guarded.hpp"

namespace weftio::roce {

bool payload_gone(const roce_packet& packet) noexcept
{
    constexpr std::size_t smallest_page = 4096;
    const piece bytes = packet.payload;
    if (!packet.borrowed || bytes.empty())
        return false;
    return !core::guarded([&](core::touched& there) {
        there.only(bytes.data(), bytes.size());
        for (std::size_t at = 0; at < bytes.size(); at += smallest_page)
            static_cast<void>(*static_cast<const volatile std::uint8_t*>(&bytes[at]));
        static_cast<void>(*static_cast<const volatile std::uint8_t*>(&bytes.back()));
    });
}

} // namespace weftio::roce
