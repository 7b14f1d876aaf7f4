#include "weftio/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "exchange/tcp.hpp"

namespace weftio {

namespace {

// A message is its kind (4 bytes), its length (4, network byte order), and that many bytes.
constexpr std::string_view swap_kind = "SWAP", meet_kind = "MEET";
constexpr std::size_t kind_bytes = 4, header_bytes = 8;

std::string message_of(std::string_view kind, std::span<const std::uint8_t> bytes)
{
    std::string message(kind);
    for (const int shift : {24, 16, 8, 0})
        message += static_cast<char>(bytes.size() >> shift);
    return message.append(bytes.begin(), bytes.end());
}

/// The length that the peer's header announces.
std::size_t length_of(std::string_view header, std::string_view our_kind, const exchange::timed_call& call)
{
    const std::string_view kind = header.substr(0, kind_bytes);
    std::size_t length = 0;
    for (const char byte : header.substr(kind_bytes))
        length = length << 8 | static_cast<unsigned char>(byte);
    if ((kind != swap_kind && kind != meet_kind) || length > (kind == swap_kind ? tcp_exchange::most_bytes : 0))
        call.fail(errc::invalid_argument,
                  "the peer announces {} bytes of \"{}\", which no tcp_exchange sends; let only tcp_exchange write to "
                  "the connection",
                  length, kind);
    if (kind != our_kind)
        call.fail(errc::invalid_argument, "the peer is in its {}; make the same calls in the same order at both ends",
                  kind == swap_kind ? "swap()" : "meet()");
    return length;
}

/// Sends our message and receives the peer's, both at once. Returns the bytes behind its header.
std::string swap_messages(const exchange::tcp_socket& peer, std::string_view kind, const std::string& ours,
                          const exchange::timed_call& call)
{
    std::string theirs;
    std::size_t wanted = header_bytes;
    for (std::string_view left = ours; !left.empty() || theirs.size() < wanted;) {
        const int events = (left.empty() ? 0 : POLLOUT) | (theirs.size() < wanted ? POLLIN : 0);
        if (!call.wait({{peer.get(), static_cast<short>(events), 0}}))
            call.fail(errc::timed_out,
                      "the peer has sent {} bytes and received {} of our {} within {} ms; check whether it hangs, or "
                      "increase exchange_options::timeout",
                      theirs.size(), ours.size() - left.size(), ours.size(), call.timeout_ms());
        const int refused = exchange::send_some(peer, left), ended = exchange::receive_some(peer, theirs, wanted);
        if (theirs.size() == header_bytes) // a wrong header says more than a lost connection
            wanted = header_bytes + length_of(theirs, kind, call);
        if (const int reason = ended != 0 ? ended : refused; reason == ESHUTDOWN)
            call.fail(errc::closed, "the peer closed the connection; check the peer for the reason");
        else if (reason != 0)
            call.fail(errc::closed, "the connection is lost: {}; check the peer for the reason", std::strerror(reason));
    }
    return theirs.substr(header_bytes);
}

} // namespace

tcp_exchange::tcp_exchange(std::unique_ptr<state> state) noexcept : state_(std::move(state)) {}
tcp_exchange::tcp_exchange(tcp_exchange&&) noexcept = default;
tcp_exchange& tcp_exchange::operator=(tcp_exchange&&) noexcept = default;
tcp_exchange::~tcp_exchange() = default;

std::vector<std::uint8_t> tcp_exchange::make_call(std::string_view kind, std::span<const std::uint8_t> ours)
{
    if (!state_ || !state_->socket)
        throw error(errc::closed, fmt::format("weftio: tcp_exchange: {}; connect again, at both ends",
                                              state_ ? "an earlier call failed" : "it was moved from"));
    const exchange::timed_call call(state_->options, fmt::format("weftio: tcp_exchange with {}", state_->peer));
    exchange::tcp_socket socket = std::move(state_->socket); // closed by what throws
    const std::string theirs = swap_messages(socket, kind, message_of(kind, ours), call);
    state_->socket = std::move(socket);
    return {theirs.begin(), theirs.end()};
}

std::vector<std::uint8_t> tcp_exchange::swap(std::span<const std::uint8_t> ours)
{
    if (ours.size() > most_bytes)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: tcp_exchange: {} bytes exceed the {} of one swap(); make several calls",
                                ours.size(), most_bytes));
    return make_call(swap_kind, ours);
}

rdma_address tcp_exchange::swap(const rdma_address& ours)
{
    return rdma_address::of_bytes(swap(std::span<const std::uint8_t>(ours.bytes)));
}

remote_region tcp_exchange::swap(const remote_region& ours)
{
    return remote_region::of_bytes(swap(std::span<const std::uint8_t>(ours.to_bytes())));
}

std::vector<remote_region> tcp_exchange::swap(std::span<const remote_region> ours)
{
    std::vector<std::uint8_t> bytes;
    for (const remote_region& each : ours) {
        const auto blob = each.to_bytes();
        bytes.insert(bytes.end(), blob.begin(), blob.end());
    }
    bytes = swap(std::span<const std::uint8_t>(bytes));
    std::vector<remote_region> theirs;
    for (std::size_t at = 0; at < bytes.size(); at += remote_region::size_bytes)
        theirs.push_back(remote_region::of_bytes(
            std::span(bytes).subspan(at, std::min(bytes.size() - at, remote_region::size_bytes))));
    return theirs;
}

void tcp_exchange::meet()
{
    make_call(meet_kind, {});
}

bool tcp_exchange::connected() const noexcept
{
    return state_ && state_->socket && exchange::is_open(state_->socket);
}

const std::string& tcp_exchange::peer() const noexcept
{
    return state_->peer;
}

} // namespace weftio
