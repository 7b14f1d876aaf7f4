// Any datagrams for queue pairs (UD), and any contents of the receive ring that queue pairs share.
//
// The input is a row of operations: datagrams that are right but for one field, frames of any bytes, receives and links
// and records that lie, entries that name any peer, changes of state. After each operation, each posted entry has been
// completed, is in use or is still there. Now and then, and at the end, honest queue pairs exchange a message.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/guarded.hpp"
#include "datagram_frame.hpp"
#include "expect.hpp"
#include "frame_mbufs.hpp"
#include "named_regions.hpp"
#include "shared_ring.hpp"
#include "slow_wire.hpp"
#include "software_nic.hpp"
#include "written_pair.hpp"

namespace weftio::fuzz {

namespace {

using nic::soft::linked_receives;
using ground = datagram_ground;

constexpr std::uint32_t path_mtu = 1024, hostile_key = 0x11111111, honest_key = 0x2b2b2b2b;

/// What happened in all inputs.
struct tally {
    ~tally()
    {
        std::fprintf(stderr,
                     "receives: %llu datagrams, %llu honest, %llu took an entry, %llu from a shared ring, %llu lies, "
                     "%llu flushes, %llu rounds of others\n",
                     datagrams, honest, taken, shared, lies, flushes, rounds);
    }
    unsigned long long datagrams = 0, honest = 0, taken = 0, shared = 0, lies = 0, flushes = 0, rounds = 0;
};
tally& all()
{
    static tally made;
    return made;
}

/// A port with hostile queue pairs, of which some share a receive ring, and with honest ones.
class port_under_fire {
 public:
    port_under_fire();
    void execute(numbers in);

 private:
    void begin_again(std::uint8_t policy);
    void operate(numbers& in);
    void send_datagram(numbers& in);
    void send_any_bytes(numbers& in);
    void deliver(std::span<const std::uint8_t> frame, std::size_t first);
    void post_shared(numbers& in);
    void post_datagram(numbers& in);
    void post_message(numbers& in);
    void post_flush(written_pair& by, numbers& in);
    void lie(numbers& in);
    void change_state(numbers& in);
    void change_other(numbers& in);
    void connect();
    void poll();
    void check();
    void check_counts();
    void others_go_on();
    void exchange(written_pair& from, written_pair& to, bool by_datagram);
    void turn(std::uint32_t most) { unit_.turn({.entries = most}); }

    datagram_target target(const written_pair& of) const
    {
        return {.number = of.number(), .queue_key = hostile_key, .path_mtu = path_mtu, .in_group = in_group_};
    }
    nic::rdma_connection datagram_settings(std::uint32_t key) const;
    nic::rdma_connection connection_to(const written_pair& peer) const;

    port port_ = port::open("null", {.mode = engine_mode::inline_worker});
    nic::soft::roce_directory& directory_ = software_nic(port_).engines().directory();
    nic::soft::rdma_unit& unit_ = software_nic(port_).rdma();
    slow_wire wire_{software_nic(port_).device().id()};
    named_regions memory_{software_nic(port_).keys()};
    frame_mbufs mbufs_;
    shared_ring ring_;
    std::optional<linked_receives> shared_{ring_.begin_again()};
    /// Hostile: [0] and [1] share a ring, [2] has one of its own.
    std::array<written_pair, 3> datagrams_{{{unit_, rdma_service::datagram, &*shared_},
                                            {unit_, rdma_service::datagram, &*shared_},
                                            {unit_, rdma_service::datagram, nullptr}}};
    written_pair client_{unit_, rdma_service::reliable, nullptr, pair_shape::without_receives},
        server_{unit_, rdma_service::reliable, &*shared_};
    std::array<written_pair, 2> honest_datagrams_{
        {{unit_, rdma_service::datagram, nullptr}, {unit_, rdma_service::datagram, nullptr}}},
        honest_{{{unit_, rdma_service::reliable, nullptr},
                 {unit_, rdma_service::reliable, nullptr, pair_shape::of_kernels}}};
    const std::array<written_pair*, 3> sharing_{&datagrams_[0], &datagrams_[1], &server_};
    bool in_group_ = false, was_broken_ = false;
    std::uint64_t received_when_broken_ = 0;
    std::uint8_t round_ = 0; ///< of honest messages
    unsigned rounds_ = 0;    ///< in this input
};

port_under_fire::port_under_fire()
{
    core::guard_memory();
    for (const net::roce_gid& each : {ground::ipv4, ground::ipv6})
        directory_.add_address({.address = each, .mac = ground::mac});
}

nic::rdma_connection port_under_fire::datagram_settings(std::uint32_t key) const
{
    nic::rdma_connection how;
    how.path_mtu = path_mtu;
    how.queue_key = key;
    how.sources = {{.address = ground::ipv4, .mac = ground::mac}, {.address = ground::ipv6, .mac = ground::mac}};
    return how;
}

nic::rdma_connection port_under_fire::connection_to(const written_pair& peer) const
{
    nic::rdma_connection how;
    how.path.source = how.path.destination = ground::ipv4;
    how.path.source_mac = how.path.destination_mac = ground::mac;
    how.peer_queue = peer.number();
    how.path_mtu = path_mtu;
    how.min_rnr_timer = 1; // 0.01 ms
    return how;
}

void port_under_fire::connect()
{
    client_.start(connection_to(server_));
    server_.start(connection_to(client_));
}

void port_under_fire::begin_again(std::uint8_t policy)
{
    const auto of_choice = (policy & 1) != 0 ? completion_overrun::fail : completion_overrun::hold;
    for (written_pair* each : {&datagrams_[0], &datagrams_[1], &datagrams_[2], &client_, &server_})
        each->begin_again(of_choice);
    for (auto* pairs : {&honest_datagrams_, &honest_})
        for (written_pair& each : *pairs)
            each.begin_again(completion_overrun::hold);
    shared_.emplace(ring_.begin_again());
    was_broken_ = in_group_ = false;
    rounds_ = 0;
    for (written_pair& each : datagrams_) {
        unit_.detach(each.number(), ground::group);
        each.start(datagram_settings(hostile_key));
    }
    for (written_pair& each : honest_datagrams_)
        each.start(datagram_settings(honest_key));
    connect();
    honest_[0].start(connection_to(honest_[1]));
    honest_[1].start(connection_to(honest_[0]));
}

void port_under_fire::operate(numbers& in)
{
    switch (in.byte() % 16) {
        case 0:
        case 1:
        case 2: return send_datagram(in);
        case 3: return send_any_bytes(in);
        case 4:
        case 5: return post_shared(in);
        case 6: datagrams_[2].post_receive(memory_.any(in)); return;
        case 7: return lie(in);
        case 8:
        case 9: return post_datagram(in);
        case 10: return post_message(in);
        case 11: return change_state(in);
        case 12: return change_other(in);
        case 13: {
            constexpr unsigned most_rounds = 8;
            if (rounds_++ < most_rounds)
                others_go_on();
            return;
        }
        default: return turn(1 + in.byte());
    }
}

void port_under_fire::send_datagram(numbers& in)
{
    written_pair& to = datagrams_[in.byte() % datagrams_.size()];
    const datagram_target named = target(to);
    const datagram_frame made = datagram_maker(named, in).make();
    if (made.bytes.empty())
        return;
    const std::size_t first = in.byte() % 8 != 1 ? 0 : 70 + in.byte() % 40; // with the headers that claims() reads
    const bool broken = to.has_shared() && (shared_->is_broken() || ring_.has_lied());
    const bool must = made.honest && to.must_take() && !broken && to.waiting() != 0;
    const std::uint64_t before = to.received();
    deliver(made.bytes, first);
    expect(!must || to.received() == before + 1, "an honest datagram takes one entry");
    all().honest += made.honest;
    all().shared += to.has_shared() && to.received() != before;
}

void port_under_fire::send_any_bytes(numbers& in)
{
    std::array<std::uint8_t, 128> frame;
    const std::size_t count = in.byte() % frame.size();
    for (std::size_t at = 0; at != count; ++at)
        frame[at] = in.byte();
    if (count != 0)
        deliver(std::span(frame).first(count), 0);
}

/// As the engine takes a frame from the driver. Only a frame that is right may take an entry, and not more than one.
void port_under_fire::deliver(std::span<const std::uint8_t> frame, std::size_t first)
{
    ++all().datagrams;
    std::array<std::uint64_t, 3> before;
    for (std::size_t each = 0; each != before.size(); ++each)
        before[each] = datagrams_[each].received();
    rte_mbuf* const mbuf = mbufs_.make(frame, first);
    const net::packet_headers headers =
        net::parse({rte_pktmbuf_mtod(mbuf, const std::uint8_t*), mbuf->data_len}, std::nullopt);
    if (unit_.arrivals().claims(*mbuf, headers))
        expect(!unit_.arrivals().take(*mbuf, headers), "one engine hands nothing over");
    mbufs_.free(mbuf);
    for (std::size_t each = 0; each != before.size(); ++each) {
        const std::uint64_t taken = datagrams_[each].received() - before[each];
        expect(taken <= 1, "a datagram takes one entry of a queue pair at most");
        expect(taken == 0 || frame_reader(frame).may_take(target(datagrams_[each])),
               "a datagram that is not right takes no entry");
        all().taken += taken;
    }
}

void port_under_fire::post_shared(numbers& in)
{
    std::array<named_region, shared_ring::segments> pieces;
    for (unsigned left = 1 + in.byte() % 4u; left != 0; --left) {
        const std::size_t count = in.byte() % shared_ring::segments;
        for (named_region& each : std::span(pieces).first(count))
            each = memory_.any(in);
        ring_.post(std::span(pieces).first(count));
    }
}

/// Of memory that its entry may name, or not.
void port_under_fire::post_flush(written_pair& by, numbers& in)
{
    ++all().flushes;
    raw_entry entry;
    const named_region piece = memory_.any(in);
    entry.pointer(static_cast<std::uint32_t>(piece.bytes), piece.key, piece.base);
    by.post(entry, WEFTIO_OPCODE_DUMP, &in);
}

/// Mostly to a hostile queue pair. The honest ones may get one too, as from anybody who knows their Q_Key.
void port_under_fire::post_datagram(numbers& in)
{
    const std::uint8_t choice = in.byte(), kind = in.byte();
    written_pair& from = datagrams_[choice % 3];
    named_peer to{.queue_key = kind % 8 == 0 ? in.word() : hostile_key,
                  .queue = datagrams_[choice / 3 % 3].number(),
                  .gid_index = kind % 16 == 1 ? in.byte() : (choice & 0x80u) >> 7,
                  .mac = ground::mac};
    to.gid = (choice & 0x80) != 0 ? ground::ipv6 : ground::ipv4;
    if (kind % 16 == 2)
        to.gid[15] ^= in.byte(); // leaves the port
    if (kind % 16 == 3) {
        to.gid = ground::group;
        to.mac = ground::group_mac;
        to.queue = ground::number_of_groups;
    }
    if (kind >= 224 && kind < 232)
        return post_flush(from, in);
    raw_entry entry;
    entry.datagram(to);
    for (unsigned left = kind / 16 % 4; left != 0; --left)
        if (const named_region piece = memory_.any(in); left == 3)
            entry.inlined(static_cast<std::uint32_t>(piece.bytes % 100), kind);
        else
            entry.pointer(static_cast<std::uint32_t>(piece.bytes % 600), piece.key, piece.base);
    entry.last = entry.last == 0 ? 3 : entry.last;
    from.post(entry,
              kind >= 240   ? WEFTIO_OPCODE_SEND_IMMEDIATE
              : kind >= 232 ? WEFTIO_OPCODE_NOP
                            : WEFTIO_OPCODE_SEND,
              &in);
}

/// Of some packets, to the queue pair with a connection that receives into the shared ring, or back to the one that
/// receives nothing.
void port_under_fire::post_message(numbers& in)
{
    const std::uint8_t kind = in.byte();
    const bool write = kind % 4 == 1;
    if (kind % 8 == 2)
        return post_flush(client_, in);
    raw_entry entry;
    if (write) {
        const named_region& to = memory_.good();
        entry.word(1, 1) = weftio_swap32(static_cast<std::uint32_t>(to.base));
        entry.word(1, 2) = weftio_swap32(to.key);
        entry.segments = 2;
    }
    for (unsigned left = 1 + in.byte() % 3u; left != 0; --left) {
        const named_region piece = memory_.any(in);
        entry.pointer(static_cast<std::uint32_t>(piece.bytes), piece.key, piece.base);
    }
    (kind >= 240 ? server_ : client_).post(entry, write ? WEFTIO_OPCODE_RDMA_WRITE_IMMEDIATE : WEFTIO_OPCODE_SEND, &in);
}

void port_under_fire::lie(numbers& in)
{
    ++all().lies;
    const std::uint8_t choice = in.byte();
    switch (choice % 8) {
        case 0: return ring_.lie_about_links(in.byte(), in.byte() % (shared_ring::depth + 1));
        case 1: return ring_.lie_about_links(in.byte(), in.word());
        case 2: return ring_.lie_about_count(choice >= 128 ? in.half() : in.byte() % 4u);
        case 3: return datagrams_[2].lie_about_receives(choice >= 128 ? in.half() : in.byte() % 4u);
        default: { // of an entry, not its link
            std::uint32_t at = in.byte();
            at += at % shared_ring::words_of_entry == 0;
            return ring_.scribble(at, in.word());
        }
    }
}

/// Verbs have these transitions; any state leads to RESET and ERR.
void port_under_fire::change_state(numbers& in)
{
    const std::uint8_t choice = in.byte();
    if (choice % 8 == 7) {
        client_.reset();
        server_.reset();
        if (choice >= 128)
            connect();
        return;
    }
    written_pair& of = datagrams_[choice % 3];
    const nic::rdma_connection how = datagram_settings(hostile_key);
    if (choice >= 240)
        return of.modify(rdma_state::error, how);
    switch (of.nic().state()) {
        case rdma_state::reset: return of.modify(rdma_state::init, how);
        case rdma_state::init: return of.modify(rdma_state::ready_to_receive, how);
        case rdma_state::ready_to_receive: return of.modify(rdma_state::ready_to_send, how);
        case rdma_state::send_queue_drained:
        case rdma_state::send_queue_error: return of.modify(rdma_state::ready_to_send, how);
        case rdma_state::ready_to_send:
            if (choice >= 64)
                return of.modify(rdma_state::send_queue_drained, how);
            [[fallthrough]];
        case rdma_state::error:
            if (choice < 8)
                return of.modify(rdma_state::ready_to_send, how); // whose caller has not seen the failure yet
            of.reset();
            if (choice >= 32)
                of.start(how);
    }
}

void port_under_fire::change_other(numbers& in)
{
    const std::uint8_t choice = in.byte();
    switch (choice % 8) {
        case 0: return sharing_[choice / 8 % 3]->be_lazy(choice >= 128);
        case 1: return datagrams_[2].be_lazy(choice >= 128);
        case 2: return wire_.set(choice >= 128 ? ~std::uint64_t{0} : choice / 8, false);
        case 3:
        case 4: return shared_->set_limit(choice / 8 % (shared_ring::depth + 2));
        case 5: return memory_.renew();
        default:
            in_group_ = choice >= 128;
            for (const written_pair& each : datagrams_)
                in_group_ ? unit_.attach(each.number(), ground::group)
                          : static_cast<void>(unit_.detach(each.number(), ground::group));
    }
}

/// Entries of the shared ring that have completed are free again.
void port_under_fire::poll()
{
    for (written_pair* each : sharing_)
        each->poll([&](const weftio_cqe& completion) {
            const std::uint32_t opcode = weftio_cqe_opcode(completion.publication);
            if (opcode != WEFTIO_CQE_OPCODE_REQUESTER && opcode != WEFTIO_CQE_OPCODE_REQUESTER_ERROR)
                ring_.complete(weftio_cqe_wqe_counter(completion.publication));
        });
    for (written_pair* each : {&datagrams_[2], &client_})
        each->poll([](const weftio_cqe&) {});
}

/// Nothing of the shared ring is lost, and nothing is there twice.
void port_under_fire::check()
{
    poll();
    std::uint64_t received = 0;
    for (const written_pair* each : sharing_)
        received += each->received();
    expect(shared_->waiting() <= shared_ring::depth, "no more wait than the ring has");
    if (shared_->is_broken()) {
        expect(ring_.has_lied(), "only a lie breaks a ring");
        if (!std::exchange(was_broken_, true))
            received_when_broken_ = received;
        expect(received <= received_when_broken_ + shared_ring::depth, "a broken ring gives what was returned only");
    }
    if (ring_.has_lied())
        return;
    const std::uint64_t in_use = ring_.posts() - received - shared_->waiting();
    expect(in_use <= 1, "an entry has completed, waits, or is that of the message under way");
    expect(shared_->limit() == 0 || shared_->waiting() >= shared_->limit(), "a limit is reported when it is reached");
}

void port_under_fire::check_counts()
{
    for (const written_pair& each : datagrams_) {
        const rdma_counters count = each.nic().counters();
        expect(count.requests == count.executed + count.not_ready + count.refused + count.ignored,
               "every datagram counts once");
        expect(count.received == count.filled + count.receive_failed + count.receive_flushed,
               "every receive counts once");
    }
    const nic::soft::roce_arrivals& came = unit_.arrivals();
    expect(came.claimed.value() == came.neighbor.value() + came.delivered.value() + came.malformed.value() +
                                       came.wrong_ip_checksum.value() + came.wrong_udp_checksum.value() +
                                       came.rx_icrc_encapsulated.value() + came.for_nobody.value() +
                                       came.not_from_peer.value() + came.other_mac.value() + came.congestion.value(),
           "every packet counts once");
}

/// A message from one honest queue pair to the other arrives as it was sent.
void port_under_fire::exchange(written_pair& from, written_pair& to, bool by_datagram)
{
    constexpr std::size_t message = 64, header = 40, slot = 128, first_slot = 1024;
    std::fill_n(memory_.honest_bytes(), message, ++round_);
    for (std::size_t at = first_slot; to.post_receive(memory_.of_honest(at, slot)); at += slot) {
    }
    raw_entry entry;
    if (by_datagram)
        entry.datagram({.queue_key = honest_key, .queue = to.number(), .mac = ground::mac, .gid = ground::ipv4});
    const named_region piece = memory_.of_honest(0, message);
    entry.pointer(message, piece.key, piece.base);
    from.post(entry, WEFTIO_OPCODE_SEND, nullptr);
    const std::uint64_t filled = to.nic().counters().filled;
    bool arrived = false;
    for (unsigned turns = 0; turns != 1000 && !arrived; ++turns) {
        turn(64);
        to.poll([&](const weftio_cqe& completion) {
            const bool ours = (weftio_swap32(completion.flags_rqpn_be) & 0xffffff) == from.number();
            arrived =
                arrived || (ours && weftio_cqe_opcode(completion.publication) == WEFTIO_CQE_OPCODE_RESPONDER_SEND);
        });
        arrived = arrived || (!by_datagram && to.nic().counters().filled != filled);
        from.poll([](const weftio_cqe&) {});
    }
    expect(arrived, "an honest message arrives");
    const std::uint8_t* const slots = memory_.honest_bytes() + first_slot;
    bool found = false;
    for (std::size_t at = by_datagram ? header : 0; at < written_pair::receive_entries * slot; at += slot)
        found =
            found || std::all_of(slots + at, slots + at + message, [&](std::uint8_t byte) { return byte == round_; });
    expect(found, "with its bytes");
}

void port_under_fire::others_go_on()
{
    ++all().rounds;
    wire_.set(~std::uint64_t{0}, false);
    exchange(honest_datagrams_[0], honest_datagrams_[1], true);
    exchange(honest_[0], honest_[1], false);
}

void port_under_fire::execute(numbers in)
{
    begin_again(in.byte());
    check();
    for (int operations = 0; operations != 300 && !in.empty(); ++operations) {
        operate(in);
        check();
    }
    others_go_on();
    check();
    check_counts();
    for (written_pair* each : sharing_)
        each->reset(); // returns the entry of a message under way
    if (ring_.has_lied())
        return;
    std::uint64_t received = 0;
    for (const written_pair* each : sharing_)
        received += each->received();
    expect(ring_.posts() == received + shared_->waiting(), "every entry has completed or is there");
}

} // namespace

} // namespace weftio::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    weftio::fuzz::all();
    static weftio::fuzz::port_under_fire port;
    port.execute({data, bytes});
    return 0;
}
