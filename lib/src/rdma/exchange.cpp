#include "weftio/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "rdma/blob.hpp"
#include "rdma/tcp_exchange_state.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

// A call is a message of 8 bytes, kind and length, and the bytes.
constexpr std::size_t kind_bytes = 4, header_bytes = 8;
constexpr std::string_view swap_kind = "SWAP", meet_kind = "MEET";

std::vector<std::uint8_t> message_of(std::string_view kind, std::span<const std::uint8_t> bytes)
{
    std::vector<std::uint8_t> message(header_bytes + bytes.size());
    std::copy(kind.begin(), kind.end(), message.begin());
    rdma::put_be(&message[kind_bytes], bytes.size(), 4);
    std::copy(bytes.begin(), bytes.end(), message.begin() + header_bytes);
    return message;
}

/// One call: our message goes, and the peer's comes, at once.
class tcp_call {
 public:
    tcp_call(const rdma::tcp_socket& peer, const rdma::time_limit& limit, std::string_view kind,
             std::span<const std::uint8_t> ours)
        : peer_(peer), limit_(limit), kind_(kind), ours_(message_of(kind, ours)), theirs_(header_bytes)
    {}

    std::vector<std::uint8_t> run()
    {
        while (sent_ < ours_.size() || received_ < theirs_.size()) {
            pollfd ready{.fd = peer_.get(), .events = 0, .revents = 0};
            ready.events =
                static_cast<short>((sent_ < ours_.size() ? POLLOUT : 0) | (received_ < theirs_.size() ? POLLIN : 0));
            if (!limit_.wait({&ready, 1}))
                limit_.expire(
                    fmt::format("the peer has sent {} bytes, and taken {} of our {},", received_, sent_, ours_.size()),
                    "look whether it hangs, or give exchange_options::timeout more time");
            const rdma::tcp_progress sent = send();
            receive(); // throws first: what the peer has said tells more than that it is gone
            require_open(sent);
        }
        theirs_.erase(theirs_.begin(), theirs_.begin() + header_bytes);
        return std::move(theirs_);
    }

 private:
    rdma::tcp_progress send() noexcept
    {
        if (sent_ == ours_.size())
            return {};
        const rdma::tcp_progress progress = rdma::send_some(peer_, std::span(ours_).subspan(sent_));
        sent_ += progress.bytes;
        return progress;
    }

    void receive()
    {
        if (received_ == theirs_.size())
            return;
        const rdma::tcp_progress progress = rdma::receive_some(peer_, std::span(theirs_).subspan(received_));
        require_open(progress);
        received_ += progress.bytes;
        if (received_ == header_bytes && theirs_.size() == header_bytes && progress.bytes != 0)
            theirs_.resize(header_bytes + announced_bytes());
    }

    /// Of the peer's header.
    std::size_t announced_bytes() const
    {
        const std::string_view kind(reinterpret_cast<const char*>(theirs_.data()), kind_bytes);
        const std::size_t bytes = rdma::get_be(&theirs_[kind_bytes], 4);
        if ((kind != swap_kind && kind != meet_kind) || bytes > (kind == swap_kind ? tcp_exchange::most_bytes : 0))
            throw error(errc::invalid_argument,
                        fmt::format("{}: the peer announces {} bytes of \"{}\", which no tcp_exchange does; let only "
                                    "tcp_exchange write to the connection",
                                    limit_.what(), bytes, kind));
        if (kind != kind_)
            throw error(errc::invalid_argument,
                        fmt::format("{}: the peer is in its {}; let both ends make the same calls "
                                    "in the same order",
                                    limit_.what(), kind == swap_kind ? "swap()" : "meet()"));
        return bytes;
    }

    void require_open(const rdma::tcp_progress& progress) const
    {
        if (!progress.ended && progress.reason == 0)
            return;
        throw error(errc::closed, fmt::format("{}: {}; look at the peer for the reason", limit_.what(),
                                              progress.ended ? "the peer has closed the connection"
                                                             : std::string("the connection is lost: ") +
                                                                   std::strerror(progress.reason)));
    }

    const rdma::tcp_socket& peer_;
    const rdma::time_limit& limit_;
    const std::string_view kind_;
    const std::vector<std::uint8_t> ours_;
    std::vector<std::uint8_t> theirs_;
    std::size_t sent_ = 0, received_ = 0;
};

} // namespace

tcp_exchange::tcp_exchange(std::unique_ptr<state> state) noexcept : state_(std::move(state)) {}
tcp_exchange::tcp_exchange(tcp_exchange&&) noexcept = default;
tcp_exchange& tcp_exchange::operator=(tcp_exchange&&) noexcept = default;
tcp_exchange::~tcp_exchange() = default;

tcp_exchange tcp_exchange::listen(const std::string& where, exchange_options options)
{
    return tcp_listener(where).accept(std::move(options));
}

std::vector<std::uint8_t> tcp_exchange::make_call(std::string_view kind, std::span<const std::uint8_t> ours)
{
    if (!state_ || !state_->socket)
        throw error(errc::closed, fmt::format("weftio: tcp_exchange: {}; connect anew, at both ends",
                                              state_ ? "an earlier call has failed" : "it was moved from"));
    const rdma::time_limit limit(state_->options, fmt::format("weftio: tcp_exchange with {}", state_->peer));
    rdma::tcp_socket socket = std::move(state_->socket); // closed by what throws
    std::vector<std::uint8_t> theirs = tcp_call(socket, limit, kind, ours).run();
    state_->socket = std::move(socket);
    return theirs;
}

std::vector<std::uint8_t> tcp_exchange::swap(std::span<const std::uint8_t> ours)
{
    if (ours.size() > most_bytes)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: tcp_exchange: {} bytes are more than the {} of one swap(); make several calls",
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
    const std::vector<std::uint8_t> came = swap(std::span<const std::uint8_t>(bytes));
    std::vector<remote_region> theirs;
    for (std::span<const std::uint8_t> rest = came; !rest.empty();
         rest = rest.subspan(std::min(rest.size(), remote_region::size_bytes)))
        theirs.push_back(remote_region::of_bytes(rest.first(std::min(rest.size(), remote_region::size_bytes))));
    return theirs;
}

void tcp_exchange::meet()
{
    make_call(meet_kind, {});
}

bool tcp_exchange::connected() const noexcept
{
    if (!state_ || !state_->socket)
        return false;
    pollfd ended{.fd = state_->socket.get(), .events = POLLRDHUP, .revents = 0};
    return ::poll(&ended, 1, 0) <= 0;
}

const std::string& tcp_exchange::peer() const noexcept
{
    return state_->peer;
}

} // namespace weftio
