#include "net/roce_rules.hpp"

#include <array>

namespace weftio::net {
namespace {

constexpr std::array<std::uint32_t, 32> rnr_waits_of_10_us{
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

/// IPv6, UDP, BTH, RETH with an immediate, and the ICRC: the most that comes with a payload.
constexpr std::uint32_t longest_headers_bytes = 40 + 8 + 12 + 16 + 4 + 4;

} // namespace

std::uint64_t rnr_wait_ns(std::uint8_t timer_code) noexcept
{
    return std::uint64_t{rnr_waits_of_10_us[timer_code & 0x1f]} * 10'000;
}

std::uint32_t path_mtu_of(std::uint32_t port_mtu) noexcept
{
    for (std::uint32_t mtu = largest_path_mtu; mtu >= smallest_path_mtu; mtu /= 2) {
        if (port_mtu >= mtu + longest_headers_bytes)
            return mtu;
    }
    return 0;
}

} // namespace weftio::net
