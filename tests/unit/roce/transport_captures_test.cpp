// Linux' requests into our responder, whose answers are Linux' answers byte for byte, and the other way round.
//
// Addresses, ports and IPv4's identification belong to the path, so they are taken from Linux' packet. What else may
// differ is named here.
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "fakes.hpp"
#include "reading.hpp"

namespace {

using namespace roce_ends;
using namespace weftio::net;
using roce_reading::bytes;

struct frame {
    std::size_t number; ///< in its file, from 1
    bytes raw;
    std::optional<roce_packet> packet; ///< nothing: parse_roce() refuses it, as Linux does
    bool to_responder;
    std::uint32_t queue; ///< both ends have the same number in all of these captures
};

/// The frames of a file by queue.
std::map<std::uint32_t, std::vector<frame>> queues_of(const std::filesystem::path& path)
{
    std::map<std::uint32_t, std::vector<frame>> queues;
    std::size_t number = 0;
    for (bytes& raw : roce_reading::frames_of(path)) {
        const std::uint32_t queue = static_cast<std::uint32_t>(raw[47] << 16 | raw[48] << 8 | raw[49]);
        auto& all = queues[queue];
        all.push_back({++number, std::move(raw), {}, false, queue});
        frame& last = all.back();
        last.to_responder = last.raw[33] == 2; // 192.0.2.2
        roce_packet packet;
        if (parse_roce(last.raw, packet) == roce_refusal::none)
            last.packet = packet;
    }
    return queues;
}

/// A capture of rxe-cases, and what is known of its making.
struct recorded {
    std::string file;
    std::set<std::uint32_t>
        left_out{}; ///< queues: what is checked elsewhere: source address, UDP checksum, queue number
    std::set<std::uint32_t> windows{};            ///< queues whose requests name the key of a memory window
    std::set<std::size_t> never_arrived{};        ///< packets that a relay lost, or damaged
    std::map<std::size_t, std::size_t> delayed{}; ///< packets that arrived behind a later one: which
    std::set<std::size_t> otherwise{};            ///< packets that differ, see as_linux_does()
    /// Requests that Linux repeats and we do not: its timer runs on while the peer is not ready.
    std::size_t not_repeated = 0;
    /// Requests that we send after the next answer: a loss halves our window, and leaves that of Linux as it is.
    std::size_t held_back = 0;
    /// Of those, requests that Linux acknowledges before we have sent them.
    std::size_t never_sent = 0;
    friend void PrintTo(const recorded& of, std::ostream* to) { *to << of.file; }
};

class RoceTransportCaptures : public testing::TestWithParam<recorded> {
 protected:
    void SetUp() override
    {
        for (const auto& path : roce_reading::captures())
            if (path.stem() == GetParam().file)
                queues = queues_of(path);
        ASSERT_FALSE(queues.empty());
    }
    bool is_altered() const { return GetParam().file == "rxe-altered"; }
    std::vector<frame> half(std::uint32_t queue, bool to_responder) const
    {
        std::vector<frame> found;
        for (const frame& one : queues.at(queue))
            if (one.to_responder == to_responder)
                found.push_back(one);
        return found;
    }
    /// Moves the delayed frames of one direction to where they arrived.
    void delay(std::vector<frame>& frames, bool to_responder) const
    {
        for (const auto& [number, behind] : GetParam().delayed) {
            const auto is = [](std::size_t wanted) { return [=](const frame& one) { return one.number == wanted; }; };
            const auto late = std::find_if(frames.begin(), frames.end(), is(number));
            const auto earlier = std::find_if(frames.begin(), frames.end(), is(behind));
            if (late != frames.end() && earlier != frames.end() && late->to_responder == to_responder)
                std::rotate(late, late + 1, earlier + 1);
        }
    }
    /// What reached our responder, in its order.
    std::vector<frame> arrived(std::uint32_t queue) const
    {
        std::vector<frame> asked = half(queue, true);
        if (is_altered() && queue < 0x23)
            asked.erase(asked.begin()); // the relay has kept it
        delay(asked, true);
        std::erase_if(asked, [](const frame& one) { return GetParam().never_arrived.contains(one.number); });
        return asked;
    }

    std::map<std::uint32_t, std::vector<frame>> queues;
};

/// The region of rxe-cases: 128 KiB on a page. Its key is the last one that a request of the file names, that of a
/// window the last one that a request of `queue` names.
void find_region(const std::map<std::uint32_t, std::vector<frame>>& queues, const std::set<std::uint32_t>& windows,
                 std::uint32_t queue, fake_memory& memory)
{
    memory.own_begin = UINT64_MAX;
    for (const auto& [number, frames] : queues)
        for (const frame& one : frames)
            if (one.to_responder && one.packet && one.packet->headers.address != 0) {
                memory.own_begin = std::min(memory.own_begin, one.packet->headers.address & ~std::uint64_t{0xfff});
                const bool has_the_key = windows.contains(queue) ? number == queue : !windows.contains(number);
                if (has_the_key && one.packet->headers.remote_key != 0)
                    memory.own_key = one.packet->headers.remote_key;
            }
}

/// What a READ or an atomic found there, if nothing was written there before.
void fill_as_it_was(const std::vector<frame>& frames, fake_memory& memory)
{
    std::uint64_t address = 0;
    bool first_atomic = true;
    std::map<std::uint32_t, std::uint64_t> reads; // PSN of each answer: where its bytes lie
    for (const frame& one : frames) {
        if (!one.packet)
            continue;
        const roce_headers& headers = one.packet->headers;
        const roce_shape& shape = shape_of(headers.bth.opcode);
        if (shape.has_atomic)
            address = headers.address;
        if (shape.operation == roce_operation::read_request)
            for (std::uint32_t at = 0; at < packets_of(headers.dma_bytes, 1024); ++at)
                reads[psn_add(headers.bth.psn, at)] = headers.address + at * 1024;
        if (shape.operation == roce_operation::read_response)
            std::copy(one.packet->payload.begin(), one.packet->payload.end(),
                      memory.data() + (reads.at(headers.bth.psn) - memory.own_begin));
        if (shape.has_atomic_ack && std::exchange(first_atomic, false))
            std::memcpy(memory.data() + (address - memory.own_begin), &headers.original, 8);
    }
}

/// Ours, with the way of Linux' answer.
bytes built_like(const frame& theirs, const roce_headers& headers, std::span<const piece> payload)
{
    fake_wire wire;
    wire.path = theirs.packet->path;
    wire.send(headers, payload);
    return wire.frames.at(0);
}

/// Compares each packet with the next one of Linux.
class comparing_sink : public packet_sink {
 public:
    comparing_sink(std::vector<frame> theirs, const recorded& named) : theirs_(std::move(theirs)), named_(named) {}

    bool send(const roce_headers& headers, std::span<const piece> payload) override
    {
        ++count;
        if (count > theirs_.size())
            return true; // rxe-altered has five frames of a queue at most
        const frame& one = theirs_[count - 1];
        EXPECT_EQ(named_.otherwise.contains(one.number), built_like(one, headers, payload) != one.raw);
        EXPECT_EQ(built_like(one, as_linux_does(one, headers), payload), one.raw)
            << named_.file << ", frame " << one.number;
        return true;
    }

    std::size_t count = 0;

 private:
    /// A SEND that is too long: Linux answers "remote operational error". A repeat before anything was acknowledged:
    /// Linux acknowledges a PSN that has not come. In a long message Linux asks for an ACK after 65 packets without, we
    /// on each 64th, and after a loss four times in a window. The rest of a READ, asked for again: Linux goes on with
    /// MIDDLE or LAST, we begin with FIRST or ONLY, for the request is one READ of its own.
    roce_headers as_linux_does(const frame& one, roce_headers ours)
    {
        const roce_headers& linux = one.packet->headers;
        if (!named_.otherwise.contains(one.number))
            return ours;
        if (linux.syndrome == 0x63 && ours.syndrome == 0x61)
            ours.syndrome = 0x63;
        else if (shape_of(ours.bth.opcode).operation == roce_operation::read_response)
            ours.bth.opcode = linux.bth.opcode;
        else if (shape_of(ours.bth.opcode).is_request())
            ours.bth.ack_request = linux.bth.ack_request;
        else if (linux.bth.psn == 0xffffff)
            ours.bth.psn = 0xffffff;
        return ours;
    }

    std::vector<frame> theirs_;
    const recorded& named_;
};

std::size_t count_rnr(const std::vector<frame>& answers)
{
    return static_cast<std::size_t>(std::count_if(answers.begin(), answers.end(), [](const frame& one) {
        return one.packet && kind_of(one.packet->headers.syndrome) == aeth_kind::rnr_nak;
    }));
}

TEST_P(RoceTransportCaptures, TheResponderAnswersAsLinuxDoes)
{
    for (const auto& [queue, frames] : queues) {
        if (GetParam().left_out.contains(queue))
            continue;
        fake_memory memory(0x20000);
        find_region(queues, GetParam().windows, queue, memory);
        fill_as_it_was(frames, memory);
        fake_receives receives;
        std::vector<frame> answered = half(queue, false);
        if (is_altered() && queue >= 0x23)
            answered.erase(answered.begin() + 1); // the relay has made it
        comparing_sink sink(answered, GetParam());
        const bool narrow = GetParam().file == "rxe-errors" && queue == 0x20;
        workspace shared;
        responder ours(weftio::rdma_service::reliable,
                       {.path_mtu = narrow ? 256u : 1024u,
                        .peer_queue = queue,
                        .receive_psn = 0xfffffe,
                        .most_reads_of_peer = 4,
                        .min_rnr_timer = 18},
                       memory, receives, shared);
        const std::size_t too_early = count_rnr(answered);
        for (const frame& one : arrived(queue)) {
            if (receives.posted.empty() && ours.not_ready.value() == too_early)
                receives.post(GetParam().file == "rxe-errors" ? 1500 : 4096);
            if (one.packet)
                ours.receive(*one.packet);
            ours.send(sink, 1000);
        }
        if (is_altered())
            EXPECT_GE(sink.count, answered.size()) << "queue " << queue;
        else
            EXPECT_EQ(sink.count, answered.size()) << "queue " << queue;
    }
}

/// Entries whose packets are those of Linux.
void post_what_was_asked(const std::vector<frame>& asked, fake_sends& sends)
{
    std::uint32_t next = asked.front().packet->headers.bth.psn;
    bytes local;
    message request;
    for (const frame& one : asked) {
        if (!one.packet || psn_distance(next, one.packet->headers.bth.psn) != 0)
            continue;
        const roce_headers& headers = one.packet->headers;
        const roce_shape& shape = shape_of(headers.bth.opcode);
        if (shape.begins()) {
            local.clear();
            request = {.remote_address = headers.address,
                       .swap_or_add = headers.swap_or_add,
                       .compare = headers.compare,
                       .remote_key = headers.remote_key,
                       .operation = shape.operation};
        }
        const bool reads = shape.operation == roce_operation::read_request;
        next = psn_add(next, reads ? packets_of(headers.dma_bytes, 1024) : 1);
        local.insert(local.end(), one.packet->payload.begin(), one.packet->payload.end());
        if (reads || shape.has_atomic)
            local.resize(reads ? headers.dma_bytes : 8);
        request.solicited = headers.bth.solicited;
        if (shape.has_immediate)
            request.extra = roce_extra::immediate, request.immediate_or_key = headers.immediate;
        if (shape.has_invalidate)
            request.extra = roce_extra::invalidate, request.immediate_or_key = headers.invalidate_key;
        if (shape.ends())
            sends.post(request, local);
    }
}

/// Linux' capture of one queue, in which our requester takes the place of Linux' one.
class other_requester {
 public:
    other_requester(const recorded& named, const std::vector<frame>& asked)
        : named_(named), ours_(weftio::rdma_service::reliable,
                               {.peer_queue = asked.front().queue,
                                .send_psn = asked.front().packet->headers.bth.psn,
                                .most_reads = 4,
                                .timeout = 14,
                                .retry_count = 3},
                               sends, shared_)
    {
        post_what_was_asked(asked, sends);
        next_ = asked.front().packet->headers.bth.psn;
        last_ = psn_add(next_, -1);
    }

    /// Linux has sent this: so do we. What it repeats after a time, we repeat after our timeout, without probes.
    void asks(const frame& one)
    {
        now_ += 1000;
        const roce_headers& headers = one.packet->headers;
        const std::uint32_t psn = headers.bth.psn;
        const bool reads = shape_of(headers.bth.opcode).operation == roce_operation::read_request;
        const bool again = psn_distance(next_, psn) < 0;
        if (psn_distance(last_, psn) <= 0)
            now_ += ack_timeout_ns(14);
        last_ = psn_add(psn, reads ? packets_of(headers.dma_bytes, 1024) - 1 : 0);
        if (!again)
            next_ = psn_add(last_, 1);
        if (held_.empty() && sends_as(one))
            return;
        if (again)
            ++not_repeated;
        else
            held_.push_back(one);
    }
    void answers(const frame& one)
    {
        now_ += 1000;
        if (one.packet && !named_.never_arrived.contains(one.number))
            ours_.receive(*one.packet, now_);
        for (; !held_.empty() && sends_as(held_.front()); held_.pop_front())
            ++held_back;
    }
    std::size_t never_sent() const { return held_.size(); }

    fake_sends sends;
    std::size_t not_repeated = 0, held_back = 0;

 private:
    bool sends_as(const frame& one)
    {
        comparing_sink sink({one}, named_);
        return ours_.send(sink, 1, now_) != 0;
    }

    const recorded& named_;
    workspace shared_;
    requester ours_;
    std::uint64_t now_ = 1;
    std::uint32_t next_, last_; ///< PSNs: behind all that Linux has asked for, and of its last request the last
    std::deque<frame> held_;    ///< Linux has sent them, and our window was full
};

TEST_P(RoceTransportCaptures, TheRequesterAsksAsLinuxDoes)
{
    std::size_t not_repeated = 0, held_back = 0, never_sent = 0;
    for (auto& [queue, frames] : queues) {
        if (GetParam().left_out.contains(queue) || (is_altered() && queue == 0x26))
            continue; // Linux takes an ACK of what it has not sent
        other_requester ours(GetParam(), half(queue, true));
        delay(frames, false);
        std::size_t asked = 0, answered = 0;
        for (const frame& one : frames) {
            const std::size_t place = one.to_responder ? asked++ : answered++;
            if (is_altered() && (one.to_responder ? queue < 0x23 && place == 1 : queue >= 0x23 && place == 0))
                continue; // the relay has made this request, and kept this answer
            one.to_responder ? ours.asks(one) : ours.answers(one);
        }
        never_sent += ours.never_sent();
        not_repeated += ours.not_repeated;
        held_back += ours.held_back;
    }
    EXPECT_EQ(not_repeated, GetParam().not_repeated);
    EXPECT_EQ(held_back, GetParam().held_back);
    EXPECT_EQ(never_sent, GetParam().never_sent);
}

std::string name_of(const testing::TestParamInfo<recorded>& tested)
{
    std::string name = tested.param.file;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Linux, RoceTransportCaptures,
                         testing::Values(recorded{"rxe-send"}, recorded{"rxe-write"}, recorded{"rxe-read"},
                                         recorded{"rxe-atomic"},
                                         recorded{.file = "rxe-long-write", .otherwise = {64, 66}},
                                         recorded{.file = "rxe-atomic-repeat", .never_arrived = {2, 6}},
                                         recorded{"rxe-window"}, recorded{.file = "rxe-errors", .otherwise = {13}},
                                         recorded{"rxe-rnr"},
                                         recorded{.file = "rxe-psn", .left_out = {0x20}, .otherwise = {12}},
                                         recorded{.file = "rxe-altered", .left_out = {0x1a, 0x1c, 0x29}},
                                         recorded{.file = "rxe-loss",
                                                  .windows = {0x19},
                                                  .never_arrived = {7, 37, 71, 94, 123, 146, 163, 167, 172, 181},
                                                  .otherwise = {10, 73},
                                                  .held_back = 2},
                                         // Linux had sent 69 before it read 68, the NAK of another packet.
                                         recorded{.file = "rxe-reorder",
                                                  .delayed = {{2, 3}, {68, 69}},
                                                  .otherwise = {64, 66, 85, 101, 117, 133, 134},
                                                  .never_sent = 32}),
                         name_of);

} // namespace
