// Any completions, as device functions read them: a NIC that lies leads no kernel out of its queue, nor into a wait
// without end.
//
// The input is a row of operations of a NIC that writes what it likes (opcodes, owners, slots, counts, times, out of
// order) and of a kernel of 1 to 64 lanes. What the NIC writes cannot be written by the kernel; every ring lies between
// guard pages.
#include <algorithm>
#include <cstring>

#include "expect.hpp"
#include "guarded.hpp"
#include "in_lanes.hpp"
#include "raw_entry.hpp"
#include "weftio/device/eth_txq.h"

namespace weftio::fuzz {

namespace {

constexpr std::uint32_t depth = 64, stride = 64;

template <class T>
T* at(std::byte* base, std::size_t offset)
{
    return reinterpret_cast<T*>(base + offset);
}

/// The last `T` before the guard page.
template <class T>
T* last(std::byte* base, std::size_t count = 1)
{
    return at<T>(base, guarded::page - count * sizeof(T));
}

/// A receive queue; its NIC is the input.
class receive_side {
 public:
    /// An empty ring, from index `start` on.
    void begin(std::uint32_t start)
    {
        for (std::uint32_t slot = 0; slot < depth; ++slot)
            entry(slot) = weftio_cqe{.publication = WEFTIO_CQE_NEVER_WRITTEN << 24};
        control_ = {};
        rxq_ = {.completions = {at<weftio_cqe>(completions_.nic(), 0), depth - 1, 6},
                .dbrec = last<weftio_u32>(words_.kernel()),
                .control = &control_,
                .slots = at<weftio_u8>(slots_.nic(), 0),
                .stride_bytes = stride,
                .received = start,
                .released = start,
                .slot_bytes = stride};
        next_ = start;
    }

    void lie(numbers& in);
    void publish(std::uint32_t count, numbers& in);
    void receive(numbers& in);
    void check_packet(std::uint32_t index);
    void release(numbers& in);
    void abort(bool wanted) { control_.abort = wanted; }

 private:
    weftio_cqe& entry(std::uint32_t index)
    {
        return *at<weftio_cqe>(completions_.kernel(), index % depth * sizeof(weftio_cqe));
    }
    void check_address(const weftio_u8* address) const;

    guarded completions_{guarded::page}, slots_{guarded::page}, words_{guarded::page};
    weftio_dev_control control_{};
    weftio_dev_eth_rxq rxq_{};
    std::uint32_t next_ = 0; ///< that an honest NIC would write
};

void receive_side::check_address(const weftio_u8* address) const
{
    expect(address >= rxq_.slots && address <= rxq_.slots + std::size_t{depth - 1} * stride,
           "a packet lies in a slot of its queue");
    expect((address - rxq_.slots) % stride == 0, "a packet begins where its slot does");
}

/// Any bits in any completion.
void receive_side::lie(numbers& in)
{
    weftio_cqe& cqe = entry(in.byte());
    cqe.byte_count_be = in.word();
    cqe.timestamp_be = in.next<std::uint64_t>();
    cqe.hds_ip_ext = cqe.l4_hdr_type_etc = in.byte();
    cqe.publication = in.word();
}

/// The next `count` in order, of which slot and owner may be wrong.
void receive_side::publish(std::uint32_t count, numbers& in)
{
    for (; count != 0; --count, ++next_) {
        const std::uint8_t how = in.byte();
        const std::uint32_t opcode = how & 0x80 ? how & 15u : WEFTIO_CQE_OPCODE_RESPONDER_SEND;
        entry(next_).publication =
            weftio_cqe_publication(how & 0x40 ? in.half() : next_, opcode, (next_ >> 6) + (how >> 4 & 1));
    }
}

void receive_side::receive(numbers& in)
{
    static constexpr std::uint32_t shapes[] = {1, 1, 7, 32, 33, 64};
    const std::uint32_t lanes = shapes[in.byte() % 6], before = rxq_.received;
    const std::uint32_t most = in.byte();
    const std::uint64_t timeout_ns = control_.abort ? 0 : 1 + in.byte() * 16u;
    std::uint32_t counts[64], firsts[64];
    std::int32_t statuses[64];
    in_lanes(lanes, {}, [&] {
        const std::uint32_t lane = weftio_lane();
        statuses[lane] = weftio_dev_eth_rxq_receive_block(&rxq_, most, timeout_ns, &counts[lane], &firsts[lane]);
    });
    const std::uint32_t count = counts[0];
    for (std::uint32_t lane = 1; lane < lanes; ++lane)
        expect(counts[lane] == count && firsts[lane] == firsts[0] && statuses[lane] == statuses[0],
               "all lanes are told the same");
    expect(statuses[0] == (control_.abort ? WEFTIO_DEV_ABORTED : WEFTIO_DEV_OK),
           "a receive ends with its time or the abort flag");
    expect(firsts[0] == before && rxq_.received == before + count, "indices go on where they were");
    expect(count <= (most == 0 ? depth : std::min(most, depth)),
           "nobody gets more packets than asked for, or than the ring has");
    for (std::uint32_t packet = 0; packet < count; ++packet)
        check_packet(before + packet);
    if (lanes == 1) // more lanes look at different completions, of which a NIC that skips some misleads them
        for (std::uint32_t packet = 0; packet < count; ++packet)
            expect(weftio_cqe_is_published(entry(before + packet).publication, (before + packet) >> 6),
                   "what is received is there");
}

void receive_side::check_packet(std::uint32_t index)
{
    weftio_dev_packet packet, untouched;
    std::memset(&packet, 0x5a, sizeof packet);
    std::memcpy(&untouched, &packet, sizeof packet);
    const std::int32_t status = weftio_dev_eth_rxq_packet(&rxq_, index, &packet);
    const bool there =
        rxq_.received - 1 - index < depth && weftio_cqe_is_published(entry(index).publication, index >> 6);
    expect(status == (there ? WEFTIO_DEV_OK : WEFTIO_DEV_NOT_FOUND),
           "a packet is there when it has come and its completion is");
    if (there)
        check_address(packet.address);
    else
        expect(std::memcmp(&packet, &untouched, sizeof packet) == 0, "a packet that is not there changes nothing");
    check_address(weftio_dev_eth_rxq_address(&rxq_, index));
    const weftio_dev_buf buffer = weftio_dev_eth_rxq_buf(&rxq_, index);
    check_address(buffer.address);
    expect(buffer.bytes == stride, "a buffer is as long as its slot");
}

void receive_side::release(numbers& in)
{
    const std::uint8_t how = in.byte();
    const std::uint32_t held = rxq_.received - rxq_.released, first = rxq_.released + (how & 0x80 ? in.half() : 0),
                        count = how & 0x7f;
    const std::uint32_t record = *rxq_.dbrec;
    const std::int32_t status = weftio_dev_eth_rxq_release(&rxq_, first, count);
    if (first == rxq_.released - (status == WEFTIO_DEV_OK ? count : 0) && count <= held)
        expect(status == WEFTIO_DEV_OK && *rxq_.dbrec == weftio_swap32((first + count + depth) & 0xffff),
               "what is released is posted");
    else
        expect(status != WEFTIO_DEV_OK && *rxq_.dbrec == record, "what is refused is not posted");
    expect(rxq_.received - rxq_.released <= held, "a kernel holds what it has received");
}

/// A send queue, in one of its two modes.
class send_side {
 public:
    /// Nothing enqueued, all before `start` completed.
    void begin(std::uint32_t start, bool strong)
    {
        strong_ = strong;
        std::memset(filled_.kernel(), 0, filled_.bytes());
        control_ = {};
        txq_ = {.queue = {.ring = {.segments = at<weftio_u32>(entries_.kernel(), 0),
                                   .mask = depth - 1,
                                   .ready = start,
                                   .dbrec = last<weftio_u32>(words_.kernel()),
                                   .doorbell = at<weftio_u64>(words_.kernel(), 0),
                                   .completion = last<weftio_cqe>(completion_.nic()),
                                   .filled = last<weftio_u32>(filled_.kernel(), depth),
                                   .reserved = start,
                                   .asked = start,
                                   .completed = start},
                          .control = &control_}};
        written() = {.publication = weftio_cqe_publication(start - 1, WEFTIO_CQE_OPCODE_REQUESTER, 0)};
    }

    void complete(numbers& in);
    void enqueue(numbers& in);
    void commit(numbers& in);
    void ask(numbers& in);
    void abort(bool wanted) { control_.abort = wanted; }

 private:
    weftio_cqe& written() { return *last<weftio_cqe>(completion_.kernel()); }
    bool failed() { return weftio_cqe_opcode(written().publication) == WEFTIO_CQE_OPCODE_REQUESTER_ERROR; }
    std::uint32_t in_flight() const { return txq_.queue.ring.reserved - weftio_dev_send_completed(&txq_.queue.ring); }

    guarded entries_{guarded::page}, words_{guarded::page}, completion_{guarded::page}, filled_{guarded::page},
        frames_{guarded::page};
    weftio_dev_control control_{};
    weftio_dev_eth_txq txq_{};
    bool strong_ = true;
};

/// All that is committed, or what the NIC likes.
void send_side::complete(numbers& in)
{
    const std::uint8_t how = in.byte();
    const std::uint32_t opcode = how & 2 ? how >> 4 : WEFTIO_CQE_OPCODE_REQUESTER;
    written().timestamp_be = how & 4 ? in.next<std::uint64_t>() : weftio_swap64(1ull << 32);
    written().publication =
        weftio_cqe_publication(how & 1 ? in.half() : txq_.queue.ring.ready - 1, opcode, how >> 3 & 1);
}

void send_side::enqueue(numbers& in)
{
    const std::uint8_t how = in.byte();
    const std::uint32_t bytes = in.byte() & 127u, position = how & 8 ? in.word() : txq_.queue.ring.ready + (how >> 4);
    const weftio_dev_buf buffer{at<weftio_u8>(frames_.nic(), guarded::page - 100), 100, 0};
    const std::uint32_t in_flight_before = in_flight();
    std::int32_t status = 0;
    std::uint32_t blocks = 1;
    if (!strong_) {
        status = how & 1 ? weftio_dev_eth_txq_send_enqueue_weak(&txq_, buffer, bytes, position, how)
                         : weftio_dev_eth_txq_wait_time_enqueue_weak(&txq_, position, position, how);
        expect(status == WEFTIO_DEV_OK || status == WEFTIO_DEV_INVALID_ARGUMENT, "a position is taken or refused");
        return;
    }
    if (how & 1) {
        status = weftio_dev_eth_txq_send_enqueue_strong(&txq_, buffer, bytes, how);
        expect((status == WEFTIO_DEV_INVALID_ARGUMENT) == (bytes == 0 || bytes > buffer.bytes),
               "a frame fits its buffer");
    } else if (how & 2) {
        status = weftio_dev_eth_txq_send_inline_enqueue_strong(&txq_, buffer.address, bytes, how);
        blocks = bytes > 28 ? 2 : 1;
        expect((status == WEFTIO_DEV_INVALID_ARGUMENT) == (bytes == 0 || bytes > WEFTIO_DEV_INLINE_BYTES),
               "a frame fits its entry");
    } else {
        status = weftio_dev_eth_txq_wait_time_enqueue_strong(&txq_, position, how);
    }
    if (status == WEFTIO_DEV_FULL)
        expect(in_flight_before + blocks > depth, "a ring is full when it is");
}

void send_side::commit(numbers& in)
{
    const std::uint8_t how = in.byte();
    const std::uint32_t before = txq_.queue.ring.ready, count = how >> 1;
    const std::int32_t status =
        strong_ ? weftio_dev_eth_txq_commit_strong(&txq_) : weftio_dev_eth_txq_commit_weak(&txq_, count);
    const std::int32_t wanted = failed() ? WEFTIO_DEV_QUEUE_ERROR : control_.abort ? WEFTIO_DEV_ABORTED : WEFTIO_DEV_OK;
    if (!strong_ && count > depth) {
        expect(status == WEFTIO_DEV_INVALID_ARGUMENT && txq_.queue.ring.ready == before,
               "more than the ring has is not committed");
        return;
    }
    expect(status == wanted, "a commit tells how the queue stands");
    expect(txq_.queue.ring.ready == (strong_ ? txq_.queue.ring.reserved : before + count),
           "what is filled is committed");
    if (txq_.queue.ring.ready != before)
        expect(*txq_.queue.ring.dbrec == weftio_swap32(txq_.queue.ring.ready & 0xffff),
               "the record says what is committed");
    if (how & 1)
        weftio_dev_eth_txq_push(&txq_);
}

void send_side::ask(numbers& in)
{
    const std::uint8_t how = in.byte();
    const std::uint32_t count = how % (depth + 2), behind = in.half();
    const std::int32_t wanted = failed() ? WEFTIO_DEV_QUEUE_ERROR : control_.abort ? WEFTIO_DEV_ABORTED : WEFTIO_DEV_OK;
    expect(txq_.queue.ring.ready - weftio_dev_eth_txq_completed(&txq_) <= 0xffff,
           "nothing is completed that is not committed");
    expect(weftio_dev_send_room(&txq_.queue.ring, count) <= depth, "a ring has no more room than places");

    std::uint64_t when_ns = 77;
    const std::int32_t polled = weftio_dev_eth_txq_poll_completion(&txq_, txq_.queue.ring.ready - behind, &when_ns);
    expect(polled == WEFTIO_DEV_OK || when_ns == 77, "no time is given of what is not completed");
    expect(polled != WEFTIO_DEV_OK || !failed(), "a queue in error completes nothing well");

    const std::int32_t status = weftio_dev_eth_txq_wait_room(&txq_, count, 1 + (how >> 4));
    if (count > depth)
        expect(status == WEFTIO_DEV_INVALID_ARGUMENT, "nobody waits for more than there can be");
    else if (wanted != WEFTIO_DEV_OK)
        expect(status == wanted, "a wait ends with the queue");
    else if (status == WEFTIO_DEV_OK)
        expect(count == 0 || txq_.queue.ring.reserved - txq_.queue.ring.completed + count <= depth,
               "room that is promised is there");
    else
        expect(status == WEFTIO_DEV_TIMEOUT && in_flight() + count > depth, "a wait ends with its time");
}

void execute(numbers in)
{
    static constexpr std::uint32_t starts[] = {0, 0xffe0, 0xffff'ffe0, 0x1234'5678};
    const std::uint8_t how = in.byte();
    static receive_side receiver;
    static send_side sender;
    receiver.begin(starts[how & 3]);
    sender.begin(starts[how >> 2 & 3], how & 16);
    while (!in.empty()) {
        const std::uint8_t operation = in.byte();
        switch (operation & 15) {
            case 0: receiver.lie(in); break;
            case 1:
            case 2: receiver.publish(operation >> 3, in); break;
            case 3:
            case 4: receiver.receive(in); break;
            case 5: receiver.check_packet(in.word()); break;
            case 6:
            case 7: receiver.release(in); break;
            case 8: receiver.abort(operation & 16); break;
            case 9: sender.abort(operation & 16); break;
            case 10: sender.complete(in); break;
            case 11: sender.ask(in); break;
            case 12: sender.commit(in); break;
            default: sender.enqueue(in);
        }
    }
}

} // namespace

} // namespace weftio::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    weftio::fuzz::execute({data, bytes});
    return 0;
}
