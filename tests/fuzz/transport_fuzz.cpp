// Any packets for a responder and a requester, in any order, between whatever their owners do.
//
// Payloads lie against a guard page. What the two do with memory, entries and packets is checked at each call
// (checked_ends.hpp); that every packet and every entry has counted once is checked at the end.
#include "checked_ends.hpp"
#include "frame_memory.hpp"
#include "raw_entry.hpp"

namespace weftio::fuzz {

namespace {

using namespace net;
using namespace roce;

/// Mostly all.
access rights_of(numbers& in)
{
    const std::uint8_t choice = in.byte();
    return static_cast<access>(choice < 32 ? choice : 0xff);
}

struct connection {
    explicit connection(numbers& in)
    {
        const std::uint8_t choice = in.byte();
        service = choice % 8 == 7 ? rdma_service::unreliable : rdma_service::reliable;
        both.path_mtu = 256u << choice / 8 % 5;
        both.send_psn = both.receive_psn = in.word() & psn_mask;
        both.most_reads_of_peer = in.byte() % 4u;
        both.rights = rights_of(in);
        both.most_reads = static_cast<std::uint8_t>(both.most_reads_of_peer + in.byte() % 2u);
        both.timeout = in.byte() % 8u;
        both.retry_count = in.byte() % 8u;
        both.rnr_retry = in.byte() % 8u;
    }

    rdma_service service;
    roce_connection both;
};

class both_ends {
 public:
    explicit both_ends(numbers& in)
        : in_(in), with_(in), answers_(with_.service, with_.both, memory_, receives_, shared_),
          asks_(with_.service, with_.both, sends_, shared_)
    {}

    void act()
    {
        switch (in_.byte() % 16) {
            case 0:
            case 1:
            case 2: return request();
            case 3:
            case 4:
            case 5: return answer();
            case 6: return post_receives(in_.byte() % 4u);
            case 7: return post();
            case 8: answers_.send(to_requester_, in_.byte()); return;
            case 9: asks_.send(to_responder_, in_.byte(), now_); return;
            case 10: now_ += std::uint64_t{1} << in_.byte() % 24; return;
            case 11: now_ = std::max(now_, asks_.deadline_ns()); return;
            case 12: return change();
            default: return carry();
        }
    }
    void finish()
    {
        asks_.stop();
        answers_.stop();
        expect(!receives_.has_current(), "no entry stays behind");
        expect(sends_.ended() == asks_.entries_read.value(), "every entry has ended");
        expect(asks_.entries_read.value() ==
                   asks_.completed.value() + asks_.failed_entries.value() + asks_.flushed.value(),
               "every entry counts once");
        expect(answers_.received.value() == answers_.executed.value() + answers_.duplicate.value() +
                                                answers_.out_of_sequence.value() + answers_.not_ready.value() +
                                                answers_.refused.value() + answers_.ignored.value(),
               "every packet counts once");
    }

 private:
    std::span<const std::uint8_t> payload(std::size_t most)
    {
        static frame_memory memory;
        static const std::vector<std::uint8_t> some(largest_path_mtu, 0xa5);
        const std::uint8_t choice = in_.byte();
        const std::size_t count = choice % 4 == 0   ? in_.half() % (most + 1)
                                  : choice % 4 == 1 ? choice / 4
                                                    : with_.both.path_mtu;
        return memory.against_the_end(std::span(some).first(std::min(count, most)));
    }
    /// Mostly close to `near`.
    std::uint32_t psn(std::uint32_t near)
    {
        const std::uint8_t choice = in_.byte();
        return choice < 128 ? near : choice < 255 ? psn_add(near, choice - 192) : in_.word() & psn_mask;
    }

    void deliver(const roce_packet& packet)
    {
        const roce_headers& headers = packet.headers;
        const roce_shape shape = shape_of(headers.bth.opcode);
        memory_.whole = {};
        if (shape.begins() && shape.ends())
            memory_.whole = {headers.remote_key, headers.address, headers.dma_bytes};
        answers_.receive(packet);
    }
    void request()
    {
        roce_packet packet;
        roce_headers& headers = packet.headers;
        headers.bth.opcode = static_cast<roce_opcode>(in_.byte() % 0x30);
        headers.bth.psn = psn(answers_.expected_psn());
        headers.bth.ack_request = in_.byte() % 2 != 0;
        headers.remote_key = in_.byte() % 16 == 0 ? in_.word() : checked_memory::key;
        headers.address = checked_memory::begin + in_.half() % checked_memory::size - in_.byte() / 255;
        headers.dma_bytes = in_.byte() % 8 == 0 ? in_.word() : in_.half() % checked_memory::size;
        headers.invalidate_key = in_.byte() % 2 == 0 ? 0 : checked_memory::key;
        headers.swap_or_add = headers.compare = in_.byte();
        packet.payload = payload(largest_path_mtu);
        if (headers.bth.opcode == roce_opcode::rc_write_only && in_.byte() % 2 == 0)
            headers.dma_bytes = static_cast<std::uint32_t>(packet.payload.size());
        deliver(packet);
    }
    void answer()
    {
        roce_packet packet;
        roce_headers& headers = packet.headers;
        headers.bth.opcode = static_cast<roce_opcode>(0x0d + in_.byte() % 6);
        headers.bth.psn = psn(last_asked_);
        constexpr std::uint8_t syndromes[]{0x1f, 0x1f, 0x1f, 0x60, 0x60, 0x21, 0x05, 0x61};
        const std::uint8_t choice = in_.byte();
        headers.syndrome = choice < 240 ? syndromes[choice % 8] : in_.byte();
        packet.payload = payload(largest_path_mtu);
        asks_.receive(packet, now_);
    }
    void post()
    {
        constexpr roce_operation operations[]{roce_operation::send,         roce_operation::write,
                                              roce_operation::read_request, roce_operation::fetch_add,
                                              roce_operation::compare_swap, roce_operation::none,
                                              roce_operation::write,        roce_operation::read_request};
        message request{.operation = operations[in_.byte() % 8]};
        const std::uint8_t choice = in_.byte();
        request.extra = choice % 4 == 0    ? roce_extra::immediate
                        : choice % 16 == 1 ? roce_extra::invalidate
                                           : roce_extra::none;
        request.fence = choice / 16 % 4 == 0;
        request.bytes = choice >= 192 ? in_.word() : in_.half() % 4000;
        if (request.operation == roce_operation::fetch_add || request.operation == roce_operation::compare_swap)
            request.bytes = 8;
        request.remote_key = checked_memory::key;
        request.remote_address = checked_memory::begin + in_.byte() % 128 * 8u;
        sends_.posted.push_back(request);
        if (in_.byte() == 255)
            sends_.refusals[static_cast<std::uint32_t>(sends_.posted.size() - 1)] = refusal::wrong_size;
    }
    void post_receives(unsigned count)
    {
        for (; count != 0; --count)
            receives_.post(receive_room_);
    }
    /// What owners and users do meanwhile.
    void change()
    {
        const std::uint8_t choice = in_.byte();
        switch (choice % 6) {
            case 0: memory_.own_key = checked_memory::key + (choice >= 64 ? 0u : 1u); return;
            case 1:
                receive_room_ = choice * 8u;
                receives_.broken = choice >= 192;
                return;
            case 2: sends_.gone = choice > 192; return;
            case 3: to_responder_.room = to_requester_.room = choice / 8; return;
            default: to_responder_.room = to_requester_.room = 1000; return;
        }
    }
    /// What was sent arrives, or is lost.
    void carry()
    {
        const std::uint32_t lost = in_.word();
        std::uint32_t at = 0;
        roce_packet packet;
        for (const auto& frame : to_responder_.frames) {
            expect(parse_roce(frame, packet) == roce_refusal::none && packet.icrc_good(), "a packet can be read");
            last_asked_ = packet.headers.bth.psn;
            if ((lost >> at++ % 32 & 1) == 0)
                deliver(packet);
        }
        for (const auto& frame : to_requester_.frames) {
            expect(parse_roce(frame, packet) == roce_refusal::none && packet.icrc_good(), "a packet can be read");
            if ((lost >> at++ % 32 & 1) == 0)
                asks_.receive(packet, now_);
        }
        to_responder_.frames.clear();
        to_requester_.frames.clear();
    }

    numbers& in_;
    const connection with_;
    checked_memory memory_;
    checked_receives receives_;
    std::size_t receive_room_ = 700;
    checked_sends sends_;
    checked_wire to_responder_{with_.both.path_mtu}, to_requester_{with_.both.path_mtu};
    workspace shared_;
    responder answers_;
    requester asks_;
    std::uint64_t now_ = 1;
    std::uint32_t last_asked_ = with_.both.send_psn;
};

} // namespace

} // namespace weftio::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    weftio::fuzz::numbers in(data, bytes);
    weftio::fuzz::both_ends ends(in);
    for (int actions = 0; actions < 400 && !in.empty(); ++actions)
        ends.act();
    ends.finish();
    return 0;
}
