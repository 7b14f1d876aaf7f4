// The ends of a connection between fakes: a requester or a responder to which a test passes single packets, and both of
// them, joined by a link that may lose, double, delay, corrupt, or drop frames.
#pragma once

#include <functional>
#include <random>

#include "fakes.hpp"

namespace roce_ends {

/// What a link does to frames.
struct faults {
    unsigned lost = 0, doubled = 0, late = 0, corrupt = 0; ///< in parts of a thousand
    std::size_t room = SIZE_MAX;                           ///< the link drops frames that find so many in its queue
    std::size_t leave = SIZE_MAX;                          ///< most frames that leave the queue in one step
};

/// Carries frames from one end to the other.
class link {
 public:
    link(faults wanted, std::uint32_t seed) : faults_(wanted), random_(seed) {}

    /// What arrives of these frames, with what was late before.
    std::vector<bytes> carry(std::vector<bytes>& sent)
    {
        std::vector<bytes> arrived, late;
        for (bytes& frame : sent) {
            if (hits(faults_.lost))
                continue;
            if (hits(faults_.corrupt))
                frame[14 + random_() % (frame.size() - 14)] ^= static_cast<std::uint8_t>(1 + random_() % 255);
            if (hits(faults_.doubled))
                arrived.push_back(frame);
            (hits(faults_.late) ? late : arrived).push_back(frame);
        }
        arrived.insert(arrived.end(), late_.begin(), late_.end());
        late_ = std::move(late);
        sent.clear();
        return out_of_queue(std::move(arrived));
    }

    unsigned offered = 0, dropped = 0; ///< frames that found the queue of the link, and that found it full

 private:
    bool hits(unsigned thousandths) { return random_() % 1000 < thousandths; }
    std::vector<bytes> out_of_queue(std::vector<bytes> frames)
    {
        for (bytes& frame : frames) {
            ++offered;
            if (queue_.size() == faults_.room)
                ++dropped;
            else
                queue_.push_back(std::move(frame));
        }
        const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), faults_.leave));
        std::vector<bytes> left(queue_.begin(), end);
        queue_.erase(queue_.begin(), end);
        return left;
    }

    faults faults_;
    std::mt19937 random_;
    std::vector<bytes> late_;
    std::deque<bytes> queue_;
};

/// Both ends. One step is 10 us.
class pair_of_ends {
 public:
    explicit pair_of_ends(roce_connection asks, faults wanted = {}, std::uint32_t seed = 1,
                          std::uint32_t first_entry = 0)
        : there(wanted, seed), back(wanted, seed + 1),
          requests(weftio::rdma_service::reliable, finished(asks), sends, shared, first_entry),
          responses(weftio::rdma_service::reliable, finished(asks), memory, receives, shared)
    {
        sends.start_at(first_entry);
    }

    void step()
    {
        now += 10'000;
        requests.send(to_responder, 64, now);
        for (const bytes& frame : there.carry(to_responder.frames))
            if (roce_packet packet; arrives(frame, packet))
                responses.receive(packet);
        responses.send(to_requester, 64);
        for (const bytes& frame : back.carry(to_requester.frames))
            if (roce_packet packet; arrives(frame, packet))
                requests.receive(packet, now);
    }
    /// @return whether all entries have ended within so many steps
    bool run(unsigned steps = 100'000)
    {
        for (unsigned at = 0; at < steps && sends.ends.size() != sends.entries.size(); ++at)
            step();
        return sends.ends.size() == sends.entries.size();
    }
    bool all_succeeded() const
    {
        return std::all_of(sends.ends.begin(), sends.ends.end(),
                           [](const fake_sends::ended& end) { return end.result == refusal::none; });
    }

    fake_memory memory{1 << 20};
    fake_receives receives;
    fake_sends sends;
    fake_wire to_responder, to_requester;
    link there, back;
    workspace shared;
    requester requests;
    responder responses;
    std::uint64_t now = 1;

 private:
    static roce_connection finished(roce_connection asks)
    {
        asks.receive_psn = asks.send_psn;
        return asks;
    }
    static bool arrives(const bytes& frame, roce_packet& packet)
    {
        return parse_roce(frame, packet) == weftio::net::roce_refusal::none && packet.icrc_good();
    }
};

} // namespace roce_ends

/// A requester and a responder alone. Their settings are those of a test, with `first` and `mtu`.
namespace roce_ends::alone {

using namespace weftio::net;
using enum roce_opcode;

inline constexpr std::uint32_t first = 0xffffff, mtu = 256; // the first PSN: the next one is 0

class one_end {
 public:
    fake_wire wire;
    workspace shared;

 protected:
    /// @param memory  most bytes of memory for requests in flight
    explicit one_end(std::size_t memory) : shared{.found = {}, .pool = block_pool(memory)} {}

    static roce_connection finished(roce_connection settings)
    {
        settings.path_mtu = mtu;
        settings.send_psn = settings.receive_psn = first;
        return settings;
    }
};

} // namespace roce_ends::alone

namespace roce_ends::asking {

using namespace alone;
using ends = std::vector<fake_sends::ended>;

/// The fields of a sent packet that tests compare.
struct seen {
    roce_opcode opcode;
    std::uint32_t psn;
    bool ack_request;

    bool operator==(const seen&) const = default;
    friend void PrintTo(const seen& one, std::ostream* to)
    {
        *to << std::hex << "opcode " << int(one.opcode) << " psn " << one.psn << (one.ack_request ? " asks" : "");
    }
};
using packets = std::vector<seen>;

class at_requester : public one_end {
 public:
    /// @param memory  most bytes of memory for requests in flight
    explicit at_requester(roce_connection settings = {}, std::size_t memory = SIZE_MAX,
                          weftio::rdma_service service = weftio::rdma_service::reliable)
        : one_end(memory), ours(service, finished(settings), sends, shared)
    {}
    explicit at_requester(weftio::rdma_service service) : at_requester({}, SIZE_MAX, service) {}

    std::vector<roce_packet> sent(unsigned most = 1000)
    {
        ours.send(wire, most, now);
        return wire.read();
    }
    packets sent_packets(unsigned most = 1000)
    {
        packets all;
        for (const roce_packet& packet : sent(most))
            all.push_back({packet.headers.bth.opcode, packet.headers.bth.psn, packet.headers.bth.ack_request});
        return all;
    }
    void answer(roce_opcode opcode, std::uint32_t psn, std::uint8_t syndrome = 0x1f, const bytes& payload = {},
                std::uint64_t original = 0)
    {
        roce_packet packet;
        packet.headers.bth = {.opcode = opcode, .psn = psn & psn_mask};
        packet.headers.syndrome = syndrome;
        packet.headers.original = original;
        packet.payload = payload;
        ours.receive(packet, now);
    }
    void ack(std::uint32_t psn) { answer(rc_acknowledge, psn); }
    /// Posts a WRITE of `count` packets. @param more  whether more entries follow
    void post_write(std::size_t count, bool more = false) { sends.post(write_to(0), stamped(count * mtu, 1), more); }

    fake_sends sends;
    requester ours;
    std::uint64_t now = 1'000'000;
};

} // namespace roce_ends::asking

namespace roce_ends::responding {

using namespace alone;

/// The fields of a response packet that tests compare.
struct seen {
    roce_opcode opcode;
    std::uint32_t psn;
    std::uint8_t syndrome;
    std::uint32_t msn;

    bool operator==(const seen&) const = default;
    friend void PrintTo(const seen& one, std::ostream* to)
    {
        *to << std::hex << "opcode " << int(one.opcode) << " psn " << one.psn << " syndrome " << int(one.syndrome)
            << " msn " << one.msn;
    }
};
using answers = std::vector<seen>;

inline seen ack(std::uint32_t psn, std::uint32_t msn)
{
    return {rc_acknowledge, psn & psn_mask, 0x1f, msn};
}
inline seen nak(std::uint8_t syndrome, std::uint32_t psn, std::uint32_t msn = 0)
{
    return {rc_acknowledge, psn & psn_mask, syndrome, msn};
}

/// A responder with 4,096 bytes of memory.
class at_responder : public one_end {
 public:
    /// @param limit  most bytes of memory for requests in flight
    explicit at_responder(roce_connection settings = {}, std::size_t limit = SIZE_MAX,
                          weftio::rdma_service service = weftio::rdma_service::reliable)
        : one_end(limit), ours(service, finished(settings), memory, receives, shared)
    {}
    explicit at_responder(weftio::rdma_service service) : at_responder({}, SIZE_MAX, service) {}

    /// Passes a packet to it. @param more  sets the header fields that the opcode needs besides a PSN
    void ask(roce_opcode opcode, std::uint32_t psn, std::size_t payload_bytes = 0,
             const std::function<void(roce_headers&)>& more = {})
    {
        roce_packet packet;
        packet.headers.bth = {.opcode = opcode, .ack_request = true, .psn = psn & psn_mask};
        packet.headers.remote_key = fake_memory::key;
        packet.headers.address = fake_memory::begin;
        packet.headers.dma_bytes = static_cast<std::uint32_t>(payload_bytes);
        if (more)
            more(packet.headers);
        const bytes payload(payload_bytes, 0xee);
        packet.payload = payload;
        ours.receive(packet);
    }
    /// Passes a malformed packet, of which only the BTH is known.
    void ask_badly(roce_opcode opcode, std::uint32_t psn, roce_refusal form)
    {
        roce_packet packet;
        packet.headers.bth = {.opcode = opcode, .ack_request = true, .psn = psn & psn_mask};
        packet.form = form;
        ours.receive(packet);
    }
    answers answered(unsigned most = 1000)
    {
        ours.send(wire, most);
        answers all;
        for (const roce_packet& packet : wire.read())
            all.push_back(
                {packet.headers.bth.opcode, packet.headers.bth.psn, packet.headers.syndrome, packet.headers.msn});
        return all;
    }
    std::size_t bytes_written()
    {
        return static_cast<std::size_t>(std::count(memory.all().begin(), memory.all().end(), 0xee));
    }

    fake_memory memory{4096};
    fake_receives receives;
    responder ours;
};

inline auto dma(std::uint32_t count, std::uint64_t offset = 0, std::uint32_t key = fake_memory::key)
{
    return [=](roce_headers& headers) {
        headers.dma_bytes = count;
        headers.address = fake_memory::begin + offset;
        headers.remote_key = key;
    };
}

} // namespace roce_ends::responding
