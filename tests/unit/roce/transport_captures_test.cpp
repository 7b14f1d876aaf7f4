// Linux' requests into our responder, whose answers are Linux' answers byte for byte, and the other way round.
//
// Addresses, ports and IPv4's identification belong to the path, so they are taken from Linux' packet. What else may
// differ is named here.
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "ends.hpp"
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
    std::set<std::size_t> never_arrived{}; ///< answers that a relay lost
    std::set<std::size_t> otherwise{};     ///< packets that differ, see as_linux_does()
    std::size_t not_repeated =
        0; ///< requests that Linux repeats and we do not: its timer runs on while the peer is not ready
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

    std::map<std::uint32_t, std::vector<frame>> queues;
};

/// The region of rxe-cases: 128 KiB on a page. Its key is the last one that a request of the file names.
void find_region(const std::map<std::uint32_t, std::vector<frame>>& queues, fake_memory& memory)
{
    memory.own_begin = UINT64_MAX;
    for (const auto& [queue, frames] : queues)
        for (const frame& one : frames)
            if (one.to_responder && one.packet && one.packet->headers.address != 0) {
                memory.own_begin = std::min(memory.own_begin, one.packet->headers.address & ~std::uint64_t{0xfff});
                if (one.packet->headers.remote_key != 0)
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
    /// A SEND that is too long: Linux answers "remote operational error". A repeat before anything was acknowledged: Linux
    /// acknowledges a PSN that has not come. In a long message Linux asks for an ACK after 65 packets without, we on each
    /// 64th.
    roce_headers as_linux_does(const frame& one, roce_headers ours)
    {
        const roce_headers& linux = one.packet->headers;
        if (!named_.otherwise.contains(one.number))
            return ours;
        if (linux.syndrome == 0x63 && ours.syndrome == 0x61)
            ours.syndrome = 0x63;
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
        find_region(queues, memory);
        fill_as_it_was(frames, memory);
        fake_receives receives;
        std::vector<frame> asked = half(queue, true), answered = half(queue, false);
        if (is_altered() && queue < 0x23)
            asked.erase(asked.begin()); // the relay has kept it
        if (is_altered() && queue >= 0x23)
            answered.erase(answered.begin() + 1); // the relay has made it
        comparing_sink sink(answered, GetParam());
        const bool narrow = GetParam().file == "rxe-errors" && queue == 0x20;
        workspace shared;
        responder ours({.peer = {.peer_queue = queue, .path_mtu = narrow ? 256u : 1024u},
                        .first_psn = 0xfffffe,
                        .most_reads = 4,
                        .rnr_timer = 18},
                       memory, receives, shared);
        const std::size_t too_early = count_rnr(answered);
        for (const frame& one : asked) {
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
    send_request request;
    for (const frame& one : asked) {
        if (!one.packet || psn_distance(next, one.packet->headers.bth.psn) != 0)
            continue;
        const roce_headers& headers = one.packet->headers;
        const roce_shape& shape = shape_of(headers.bth.opcode);
        if (shape.begins()) {
            local.clear();
            request = {.operation = shape.operation,
                       .remote_key = headers.remote_key,
                       .remote_address = headers.address,
                       .swap_or_add = headers.swap_or_add,
                       .compare = headers.compare};
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
        : named_(named), ours_({.peer = {.peer_queue = asked.front().queue},
                                .first_psn = asked.front().packet->headers.bth.psn,
                                .most_reads = 4,
                                .timeout = 14,
                                .retry_count = 3},
                               sends, shared_)
    {
        post_what_was_asked(asked, sends);
        next_ = asked.front().packet->headers.bth.psn;
        last_ = psn_add(next_, -1);
    }

    /// Linux has sent this: so do we. What it repeats after a time, we repeat after our time.
    void asks(const frame& one)
    {
        now_ += 1000;
        const std::uint32_t psn = one.packet->headers.bth.psn;
        const bool again = psn_distance(next_, psn) < 0;
        if (psn_distance(last_, psn) <= 0)
            now_ = std::max(now_, ours_.deadline_ns());
        last_ = psn;
        comparing_sink sink({one}, named_);
        if (ours_.send(sink, 1, now_) == 0) {
            EXPECT_TRUE(again) << named_.file << ", frame " << one.number << " was not sent";
            ++not_repeated;
        }
        if (!again)
            next_ = psn_add(psn, 1);
    }
    void answers(const frame& one)
    {
        now_ += 1000;
        if (one.packet && !named_.never_arrived.contains(one.number))
            ours_.receive(*one.packet, now_);
    }

    fake_sends sends;
    std::size_t not_repeated = 0;

 private:
    const recorded& named_;
    workspace shared_;
    requester ours_;
    std::uint64_t now_ = 1;
    std::uint32_t next_, last_; ///< PSNs: behind all that Linux has sent, and of its last request
};

TEST_P(RoceTransportCaptures, TheRequesterAsksAsLinuxDoes)
{
    std::size_t not_repeated = 0;
    for (const auto& [queue, frames] : queues) {
        if (GetParam().left_out.contains(queue) || (is_altered() && queue == 0x26))
            continue; // Linux takes an ACK of what it has not sent
        other_requester ours(GetParam(), half(queue, true));
        std::size_t asked = 0, answered = 0;
        for (const frame& one : frames) {
            const std::size_t place = one.to_responder ? asked++ : answered++;
            if (is_altered() && (one.to_responder ? queue < 0x23 && place == 1 : queue >= 0x23 && place == 0))
                continue; // the relay has made this request, and kept this answer
            one.to_responder ? ours.asks(one) : ours.answers(one);
        }
        not_repeated += ours.not_repeated;
    }
    EXPECT_EQ(not_repeated, GetParam().not_repeated);
}

std::string name_of(const testing::TestParamInfo<recorded>& tested)
{
    std::string name = tested.param.file;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

std::vector<recorded> all_recorded()
{
    std::vector<recorded> all{
        {"rxe-send"},
        {"rxe-write"},
        {"rxe-read"},
        {"rxe-atomic"},
        {.file = "rxe-atomic-repeat", .never_arrived = {2, 6}},
        {"rxe-window"},
        {.file = "rxe-errors", .otherwise = {13}},
        {"rxe-rnr"},
        {.file = "rxe-psn", .left_out = {0x20}, .otherwise = {12}},
        {.file = "rxe-altered", .left_out = {0x1a, 0x1c, 0x29}},
    };
    if (std::getenv("WEFTIO_ROCE_CAPTURES") != nullptr)
        all.push_back({.file = "rxe-long-write", .otherwise = {64, 66}});
    return all;
}

INSTANTIATE_TEST_SUITE_P(Linux, RoceTransportCaptures, testing::ValuesIn(all_recorded()), name_of);

} // namespace
