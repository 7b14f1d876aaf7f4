// Managers under test, what they have sent, and what they have told.
#pragma once

#include <algorithm>
#include <deque>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cm/manager.hpp"

namespace cm_ends {

using namespace weftio::cm;
using bytes = std::vector<std::uint8_t>;

inline constexpr std::uint64_t ms = 1'000'000;
inline constexpr std::uint64_t service = service_of(port_space::tcp, 7471);

/// 10.0.HIGH.LOW
inline roce_gid address(unsigned number)
{
    const std::uint8_t parts[4]{10, static_cast<std::uint8_t>(number >> 16), static_cast<std::uint8_t>(number >> 8),
                                static_cast<std::uint8_t>(number)};
    return weftio::net::gid_of_ipv4(parts);
}

/// What a manager has sent, oldest first.
struct outbox final : mad_sink {
    void send(const path& to, std::span<const std::uint8_t, mad_bytes> what) override
    {
        sent.emplace_back(to, bytes(what.begin(), what.end()));
    }
    std::deque<std::pair<path, bytes>> sent;
};

inline settings usual(std::uint32_t seed)
{
    return {.guid = 0x5054c0fffe000000u + seed,
            .first_id = seed * 77,
            .transaction = seed,
            .packet_life_ns = ms,
            .time_wait_ns = 100 * ms,
            .most_connections = 1000};
}

inline req usual_req(std::uint32_t queue)
{
    return {.service = service,
            .queue = queue,
            .remote_response_timeout = 14, // 67 ms
            .first_psn = queue + 1,
            .local_response_timeout = 14,
            .retry_count = 7,
            .path_mtu = 3,
            .rnr_retry_count = 7,
            .most_retries = 3};
}

/// How long the sender of such a REQ waits for its answer.
inline constexpr std::uint64_t usual_wait = (std::uint64_t{4096} << 14) + 2 * ms + 1;

/// A manager and the address it has.
struct end {
    explicit end(unsigned number) : end(number, usual(number)) {}
    end(unsigned number, const settings& with) : own(address(number)), under_test(with, out) {}

    path to(const end& other) const { return {own, other.own}; }
    /// The oldest message that was sent, which is taken out.
    mad take_sent()
    {
        if (out.sent.empty())
            throw std::runtime_error("nothing was sent");
        mad whole;
        if (read(out.sent.front().second, whole) != mad_refusal::none)
            throw std::runtime_error("something was sent that is no message");
        out.sent.pop_front();
        return whole;
    }
    template <class Body>
    Body take()
    {
        return std::get<Body>(take_sent().body);
    }
    void receive(const end& from, const mad& what, std::uint64_t now)
    {
        under_test.receive({own, from.own}, write(what), now);
    }
    event told()
    {
        auto next = under_test.next_event();
        if (!next)
            throw std::runtime_error("nothing was told");
        return *next;
    }
    bool silent() { return out.sent.empty() && !under_test.next_event(); }

    roce_gid own;
    outbox out;
    manager under_test;
};

/// Carries what was sent, both ways, until nothing is left.
inline void carry(end& one, end& other, std::uint64_t now)
{
    while (!one.out.sent.empty() || !other.out.sent.empty()) {
        for (auto [from, to] : {std::pair(&one, &other), std::pair(&other, &one)}) {
            const auto flying = std::exchange(from->out.sent, {});
            for (const auto& [way, what] : flying)
                to->under_test.receive({way.peer, way.local}, what, now);
        }
    }
}

/// A client and a server with a listener.
struct both {
    both() { server.under_test.listen(service, {}, 16, listener); }

    /// The server has accepted, and nothing of that has arrived yet.
    void until_reply(std::uint32_t queue = 0x11)
    {
        client.under_test.connect(client.to(server), usual_req(queue), now, client_id);
        carry(client, server, now);
        const event request = server.told();
        server_id = request.id;
        server.under_test.accept(server_id, {.queue = queue + 0x100}, now);
    }
    void until_established(std::uint32_t queue = 0x11)
    {
        until_reply(queue);
        carry(client, server, now);
        client.told();
        client.under_test.ready(client_id);
        carry(client, server, now);
        server.told();
    }
    std::optional<state> client_state() { return client.under_test.state_of(client_id); }
    std::optional<state> server_state() { return server.under_test.state_of(server_id); }

    end client{1}, server{2};
    std::uint32_t listener = 0, client_id = 0, server_id = 0;
    std::uint64_t now = 1000 * ms;
};

} // namespace cm_ends
