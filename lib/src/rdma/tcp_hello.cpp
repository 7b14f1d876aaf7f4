#include "rdma/tcp_hello.hpp"

#include <algorithm>
#include <string_view>

namespace weftio::rdma {

namespace {

constexpr std::string_view hello_mark = "weftio swap\n";
constexpr std::size_t hello_version_at = 12, hello_role_at = 13;

} // namespace

std::array<std::uint8_t, hello_bytes> hello_of(tcp_role role) noexcept
{
    std::array<std::uint8_t, hello_bytes> hello{};
    std::copy(hello_mark.begin(), hello_mark.end(), hello.begin());
    hello[hello_version_at] = hello_version;
    hello[hello_role_at] = static_cast<std::uint8_t>(role);
    return hello;
}

hello_verdict incoming_hello::receive(const tcp_socket& from) noexcept
{
    const tcp_progress progress = receive_some(from, std::span(bytes_).subspan(count_));
    count_ += progress.bytes;
    return progress.ended || progress.reason != 0 ? hello_verdict::ended : judge();
}

hello_verdict incoming_hello::judge() const noexcept
{
    const std::size_t marked = std::min(count_, hello_mark.size());
    if (!std::equal(bytes_.begin(), bytes_.begin() + marked, hello_mark.begin(),
                    [](std::uint8_t byte, char letter) { return byte == static_cast<std::uint8_t>(letter); }))
        return hello_verdict::stranger;
    if (count_ > hello_version_at && bytes_[hello_version_at] != hello_version)
        return hello_verdict::other_version;
    if (count_ < hello_bytes)
        return hello_verdict::incomplete;
    return bytes_[hello_role_at] == static_cast<std::uint8_t>(expected_) ? hello_verdict::good
                                                                         : hello_verdict::other_role;
}

std::string incoming_hello::text() const
{
    return {bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(count_)};
}

} // namespace weftio::rdma
