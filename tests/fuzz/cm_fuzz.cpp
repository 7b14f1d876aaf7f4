// Any messages of connection management, from hosts that mean no good, for a manager whose user does anything.
//
// A connection to an honest host is open all the time: no message of others may end it. Bytes lie against a guard page.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "cm/manager.hpp"
#include "expect.hpp"
#include "frame_memory.hpp"
#include "raw_entry.hpp"

namespace weftio::fuzz {

namespace {

using namespace cm;
using bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t service = service_of(port_space::tcp, 7471);
constexpr std::size_t most_connections = 24, backlog = 6;
constexpr std::uint32_t own_queue = 0x20, honest_queue = 0x10;

roce_gid address(std::uint8_t number)
{
    return net::gid_of_ipv4(std::array<std::uint8_t, 4>{192, 0, 2, number});
}

struct outbox final : mad_sink {
    void send(const path& to, std::span<const std::uint8_t, mad_bytes> what) override
    {
        mad whole;
        expect(read(what, whole) == mad_refusal::none, "what is sent is a message");
        sent.emplace_back(to, bytes(what.begin(), what.end()));
    }
    std::vector<std::pair<path, bytes>> sent;
};

settings with_id(std::uint32_t first)
{
    return {.guid = first,
            .first_id = first,
            .transaction = first,
            .packet_life_ns = 1000,
            .time_wait_ns = 1'000'000,
            .most_connections = most_connections};
}

class host {
 public:
    explicit host(numbers& in) : in_(in)
    {
        ours_.listen(service, {}, backlog, listener_);
        req request{.service = service, .queue = honest_queue, .path_mtu = 3, .most_retries = 15};
        expect(honest_.connect({honest_address, own_address}, request, now_, honest_id_) == refusal::none, "connects");
        carry();
        honest_connection_ = ours_.next_event()->id;
        ours_.accept(honest_connection_, {.queue = own_queue}, now_);
        carry();
        honest_.next_event();
        honest_.ready(honest_id_);
        carry();
    }
    void act()
    {
        switch (in_.byte() % 8) {
            case 0: receive_bytes(); break;
            case 1: now_ += std::uint64_t{1} << in_.byte() % 40; break;
            case 2: call(); break;
            case 3: hear(); break;
            default: receive_message(); break;
        }
        ours_.expire(now_);
        honest_.expire(now_);
        look();
        carry();
    }
    void finish()
    {
        expect(honest_.disconnect(honest_id_, {}, now_) == refusal::none, "the honest connection is open");
        expect(ours_.state_of(honest_connection_) == state::established, "at both ends");
        hear();
        carry();
        expect(ours_.state_of(honest_connection_) == state::time_wait, "it ends where it is ended");
        expect(honest_.state_of(honest_id_) == state::time_wait, "and the peer has heard so");
        ours_.stop_listening(listener_, now_);
        ids_.push_back(honest_connection_);
        while (const auto told = ours_.next_event())
            ids_.push_back(told->id);
        for (const std::uint32_t id : ids_)
            ours_.destroy(id, now_);
        for (int round = 0; round < 2000 && ours_.next_deadline() != 0; ++round) {
            now_ = std::max(now_, ours_.next_deadline());
            ours_.expire(now_);
        }
        expect(ours_.size() == 0, "nothing is left of what users have forgotten");
    }

 private:
    /// Mostly one that exists, or did; also the honest one's.
    std::uint32_t any_id()
    {
        const std::uint8_t choice = in_.byte();
        if (choice % 16 == 15)
            return honest_connection_;
        if (choice % 16 == 14 || ids_.empty())
            return in_.word();
        return ids_[choice / 16 % ids_.size()];
    }
    /// Of hosts that mean no good: never the honest one.
    path from_somebody() { return {own_address, address(static_cast<std::uint8_t>(10 + in_.byte() % 4))}; }

    void receive(const path& from, std::span<const std::uint8_t> what)
    {
        static frame_memory behind;
        out_.sent.clear();
        ours_.receive(from, behind.against_the_end(what), now_);
        expect(out_.sent.size() <= 2, "a message is not answered by many");
    }
    void receive_bytes()
    {
        bytes what(in_.byte() % 8 == 0 ? in_.half() % 300u : mad_bytes);
        for (std::uint8_t& one : what)
            one = in_.byte();
        constexpr std::array<std::uint8_t, 4> header{1, 7, 2, 3};
        if (what.size() >= 24 && in_.byte() % 8 != 0) {
            std::copy(header.begin(), header.end(), what.begin());
            what[16] = 0;
            what[17] = static_cast<std::uint8_t>(0x10 + what[17] % 12);
        }
        receive(from_somebody(), what);
    }
    message any_message(std::uint32_t id)
    {
        const std::uint32_t peer_id = in_.byte() % 8u;
        const std::uint32_t queue = in_.byte() % 4 == 0 ? own_queue : in_.byte() % 8 + 1u;
        const auto what = static_cast<about>(in_.byte() % 4);
        const std::uint8_t choice = in_.byte();
        switch (in_.byte() % 14) {
            case 0:
            case 1:
            case 2:
            case 3:
                return req{.local_id = peer_id,
                           .service = service + choice / 250,
                           .queue = queue,
                           .transport = static_cast<transport_service>(choice % 16 == 15 ? choice / 16 % 4 : 0),
                           .local_response_timeout = static_cast<std::uint8_t>(choice % 24),
                           .path_mtu = static_cast<std::uint8_t>(choice % 32 == 1 ? 0 : 1 + choice % 5),
                           .most_retries = static_cast<std::uint8_t>(choice % 4),
                           .data = {0, static_cast<std::uint8_t>(choice % 2 == 0 ? 0x40 : 0x60), choice, 1, choice}};
            case 4: return mra{.local_id = peer_id, .remote_id = id, .what = what, .service_timeout = choice};
            case 5:
                return rej{.local_id = peer_id,
                           .remote_id = choice % 4 == 0 ? 0 : id,
                           .what = what,
                           .reason = static_cast<reject_reason>(choice / 4)};
            case 6: return rep{.local_id = peer_id, .remote_id = id, .queue = queue};
            case 7: return rtu{.local_id = peer_id, .remote_id = id};
            case 8: return dreq{.local_id = peer_id, .remote_id = id, .remote_queue = queue};
            case 9: return drep{.local_id = peer_id, .remote_id = id};
            case 10: return lap{.local_id = peer_id, .remote_id = id};
            case 11: return apr{.local_id = peer_id, .remote_id = id};
            case 12: return sidr_rep{.request_id = id};
            default: return sidr_req{.request_id = peer_id, .service = service + choice / 250};
        }
    }
    void receive_message()
    {
        const std::uint32_t id = any_id();
        const std::uint8_t choice = in_.byte();
        const std::uint64_t transaction = choice % 2 == 0 ? std::uint64_t{first} << 32 | id : choice / 2 % 8u;
        receive(from_somebody(), write({transaction, any_message(id)}));
    }
    /// The user does not touch the honest connection.
    void call()
    {
        std::uint32_t id = any_id();
        if (id == honest_connection_)
            return;
        const std::uint8_t choice = in_.byte();
        switch (choice % 11) {
            case 0:
                if (ours_.connect(from_somebody(), {.queue = own_queue + choice, .path_mtu = 1, .most_retries = 2},
                                  now_, id) == refusal::none)
                    ids_.push_back(id);
                break;
            case 1:
                if (ours_.resolve(from_somebody(), {.service = choice}, choice % 20, 2, now_, id) == refusal::none)
                    ids_.push_back(id);
                break;
            case 2:
            case 3: ours_.accept(id, {.queue = own_queue + 1u + choice}, now_); break;
            case 4: ours_.reject(id, {}, now_); break;
            case 5: ours_.delay(id, choice % 32); break;
            case 6: ours_.ready(id); break;
            case 7: ours_.established(id); break;
            case 8: ours_.disconnect(id, {}, now_); break;
            case 9: ours_.destroy(id, now_); break;
            default: ours_.answer(id, {.queue = 5}, now_); break;
        }
    }
    void hear()
    {
        unsigned events = 0;
        while (const auto told = ours_.next_event()) {
            expect(told->id != honest_connection_ || told->kind == event_kind::established,
                   "nothing happens to the honest connection");
            expect(!told->gone || told->kind != event_kind::connect_request, "a request is no end");
            expect(name_of(told->body) != nullptr, "each message has a name");
            if (const req* request = std::get_if<req>(&told->body))
                check_header(request->data);
            if (!told->gone && told->id != honest_connection_)
                ids_.push_back(told->id);
            ++events;
        }
        expect(events < 4096, "events do not pile up");
    }
    /// The header of a REQ's private data is written as it was read.
    static void check_header(const private_bytes<92>& data)
    {
        const auto header = read_ip_header(data);
        if (!header)
            return;
        std::array<std::uint8_t, ip_header::bytes> again{};
        write_ip_header(again, *header);
        const auto once_more = read_ip_header(again);
        expect(once_more && once_more->source_port == header->source_port, "a header is written as it was read");
        expect(net::is_ipv4(header->destination) || once_more == header, "with its addresses");
    }
    void look()
    {
        expect(ours_.size() <= most_connections, "no more connections than there may be");
        expect(ours_.next_deadline() == 0 || ours_.next_deadline() > now_, "what is due was done");
        expect(ours_.state_of(honest_connection_) == state::established, "the honest connection stays open");
    }
    /// Between the two hosts; what is for others is lost.
    void carry()
    {
        for (int round = 0; round < 4; ++round) {
            for (const auto& [to, what] : std::exchange(out_.sent, {})) {
                if (to.peer == honest_address)
                    honest_.receive({to.peer, to.local}, what, now_);
            }
            for (const auto& [to, what] : std::exchange(honest_out_.sent, {}))
                ours_.receive({to.peer, to.local}, what, now_);
        }
    }

    static constexpr std::uint32_t first = 0x1000;
    const roce_gid own_address = address(2), honest_address = address(3);

    numbers& in_;
    outbox out_, honest_out_;
    manager ours_{with_id(first), out_};
    manager honest_{with_id(0x2000), honest_out_};
    std::uint64_t now_ = 1;
    std::uint32_t listener_ = 0, honest_id_ = 0, honest_connection_ = 0;
    std::vector<std::uint32_t> ids_; ///< that the user was told of, or has made
};

} // namespace

} // namespace weftio::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t count)
{
    weftio::fuzz::numbers in(data, count);
    weftio::fuzz::host host(in);
    for (int actions = 0; actions < 300 && !in.empty(); ++actions)
        host.act();
    host.finish();
    return 0;
}
