// rxe_peer PORT ADDRESS [-c SERVER] CASE...: the other end of rxe_cases, which runs on Linux's own RoCE device.
//
// With -c it asks, without it answers. Every case has a fresh queue pair on each side; a TCP connection (port 18600)
// carries what both must agree on. It prints a line for each thing that is not as it should be, and ends with 1 then.
// For rxe.sh.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "net/roce_headers.hpp"
#include "nic/rdma_backend.hpp"
#include "nic/soft/soft_port.hpp"
#include "unit/rdma/played_pair.hpp"
#include "weftio/weftio.hpp"

namespace {

using namespace weftio;
using namespace weftio::test;
using namespace std::chrono_literals;

constexpr std::size_t memory_bytes = 131072; // as rxe_cases has it
constexpr std::uint32_t first_psn = 0xfffffe;

/// What both ends tell each other of a case, as rxe_cases has it.
struct meeting {
    char name[16];
    std::array<std::uint8_t, 16> gid;
    std::uint32_t queue, psn, key, other_key;
    std::uint64_t address;
};

nic::roce_gid gid_of(const char* address)
{
    nic::roce_gid gid{};
    std::array<std::uint8_t, 4> ipv4{};
    if (inet_pton(AF_INET, address, ipv4.data()) == 1)
        return nic::gid_of_ipv4(ipv4);
    if (inet_pton(AF_INET6, address, gid.data()) != 1)
        throw std::runtime_error("no address");
    return gid;
}

/// The TCP connection to rxe_cases.
class channel {
 public:
    explicit channel(const char* server)
    {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(18600);
        const int one = 1;
        for (int tries = 0; server; ++tries) {
            inet_pton(AF_INET, server, &at.sin_addr);
            socket_ = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0)
                return;
            close(socket_);
            if (tries == 600)
                throw std::runtime_error("nobody listens there");
            std::this_thread::sleep_for(200ms);
        }
        const int listener = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || listen(listener, 1) != 0)
            throw std::runtime_error("TCP port 18600 is taken");
        socket_ = accept(listener, nullptr, nullptr);
        close(listener);
    }
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() { close(socket_); }

    template <class Value>
    void put(const Value& value)
    {
        if (send(socket_, &value, sizeof value, MSG_NOSIGNAL) != sizeof value)
            throw std::runtime_error("the other end has gone");
    }
    template <class Value>
    Value get()
    {
        Value value;
        if (recv(socket_, &value, sizeof value, MSG_WAITALL) != sizeof value)
            throw std::runtime_error("the other end has gone");
        return value;
    }
    /// Both ends reach this point.
    void meet()
    {
        put(char{0});
        get<char>();
    }

 private:
    int socket_ = -1;
};

class peer {
 public:
    peer(const std::string& spec, const char* address, const char* server)
        : asks_(server != nullptr), port_(port::open(spec)),
          memory_(cpu_.allocate(memory_bytes, memory_kind::cpu_device)),
          region_(port_, memory_,
                  {.rights = access::local_write | access::remote_read | access::remote_write | access::remote_atomic}),
          read_only_(port_, memory_, {.rights = access::local_write | access::remote_read}), gid_(gid_of(address)),
          own_(port_.backend().add_rdma_address({.address = gid_, .mac = port_.mac()})), tcp_(server)
    {
        for (std::size_t at = 0; at < memory_bytes; ++at)
            bytes()[at] = ours(at);
    }

    /// @return false: no such case
    bool run(const std::string& name)
    {
        const auto found = cases().find(name);
        if (found == cases().end())
            return false;
        fmt::print("{}\n", name);
        open(name, found->second.path_mtu);
        (this->*(asks_ ? found->second.ask : found->second.answer))();
        std::this_thread::sleep_for(100ms);
        tcp_.meet();
        told();
        queue_.reset();
        return true;
    }
    bool good() const { return good_; }

 private:
    struct one_case {
        void (peer::*ask)();
        void (peer::*answer)();
        std::uint32_t path_mtu = 1024; ///< of the one that answers
    };
    static const std::map<std::string, one_case>& cases();

    std::uint8_t* bytes() const { return static_cast<std::uint8_t*>(memory_.cpu_address()); }
    static std::uint8_t of_asker(std::size_t at) { return static_cast<std::uint8_t>('a' + at % 26); }
    static std::uint8_t of_answerer(std::size_t at) { return static_cast<std::uint8_t>('0' + at % 10); }
    std::uint8_t ours(std::size_t at) const { return asks_ ? of_asker(at) : of_answerer(at); }

    void expect(bool holds, const std::string& what)
    {
        if (holds)
            return;
        good_ = false;
        fmt::print("  NOT SO: {}\n", what);
    }

    void open(const std::string& name, std::uint32_t path_mtu)
    {
        queue_ = std::make_unique<played_pair>(port_, 64, 64);
        meeting mine{{},
                     gid_,
                     queue_->number(),
                     first_psn,
                     region_.lkey(),
                     read_only_.lkey(),
                     reinterpret_cast<std::uint64_t>(region_.device_address())};
        std::copy_n(name.begin(), std::min(name.size(), sizeof mine.name - 1), mine.name);
        tcp_.put(mine);
        other_ = tcp_.get<meeting>();
        expect(std::strcmp(mine.name, other_.name) == 0, fmt::format("the other end is at case {}", other_.name));
        const auto mac = own_->resolve(other_.gid);
        if (!mac)
            throw std::runtime_error("nobody answers for the address of the other end");
        queue_->nic().connect({.ours = {.mac = port_.mac(), .address = gid_, .first_psn = first_psn},
                               .theirs = {*mac, other_.gid, other_.queue, other_.psn},
                               .path_mtu = asks_ ? 1024 : path_mtu,
                               .most_reads = 4,
                               .most_reads_of_peer = 4,
                               .timeout = 18, // the guest may stall for 200 ms
                               .retry_count = 7,
                               .rnr_retry = 7,
                               .min_rnr_timer = 18});
        tcp_.meet();
    }

    segment local(std::uint32_t count, std::size_t at = 0) const
    {
        return pointer(count, region_.lkey(), reinterpret_cast<std::uint64_t>(region_.device_address()) + at);
    }
    segment far(std::uint64_t offset) const { return remote(other_.address + offset, other_.key); }

    /// Waits until an entry is done, 20 s at most, and holds its syndrome against the one that is expected.
    void completes(const char* what, std::uint32_t position, std::uint8_t syndrome = 0)
    {
        queue_->push();
        for (const auto end = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < end;) {
            const sent_state state = queue_->sent();
            const bool done = static_cast<std::int16_t>(state.position - position) >= 0 &&
                              static_cast<std::uint16_t>(state.position) != 0xffff;
            if (done || state.syndrome != 0)
                return expect(state.syndrome == syndrome,
                              fmt::format("{}: syndrome {:#04x} in place of {:#04x}", what, state.syndrome, syndrome));
            std::this_thread::sleep_for(200us);
        }
        expect(false, fmt::format("{}: no completion", what));
    }
    void ask(const char* what, std::uint32_t opcode, const std::vector<segment>& body, std::uint32_t word = 0,
             std::uint8_t syndrome = 0)
    {
        completes(what, queue_->post(opcode, body, word), syndrome);
    }
    /// Reads `count` bytes of the other end to 65536, and holds each against what it should be.
    template <class Wanted>
    void reads(std::uint32_t count, std::uint64_t from, Wanted&& wanted)
    {
        std::fill_n(bytes() + 65536, count, std::uint8_t{0});
        ask("READ", WEFTIO_OPCODE_RDMA_READ, {far(from), local(count, 65536)});
        for (std::uint32_t at = 0; at < count; ++at)
            if (bytes()[65536 + at] != wanted(from + at))
                return expect(false, fmt::format("byte {} of {} read from {} is {:#04x} in place of {:#04x}", at, count,
                                                 from, bytes()[65536 + at], wanted(from + at)));
    }

    void send()
    {
        tcp_.meet();
        for (const std::uint32_t count : {0u, 13u, 1024u, 3001u})
            ask("SEND", WEFTIO_OPCODE_SEND, count == 0 ? std::vector<segment>{} : std::vector{local(count)});
        ask("SEND with immediate", WEFTIO_OPCODE_SEND_IMMEDIATE, {local(5)}, 0xcafe0001);
    }
    void write()
    {
        tcp_.meet();
        ask("WRITE 0", WEFTIO_OPCODE_RDMA_WRITE, {remote(0, 0)});
        ask("WRITE 7", WEFTIO_OPCODE_RDMA_WRITE, {far(3), local(7)});
        reads(20, 0, [](std::size_t at) { return at >= 3 && at < 10 ? of_asker(at - 3) : of_answerer(at); });
        ask("WRITE 3001", WEFTIO_OPCODE_RDMA_WRITE, {far(5000), local(3001)});
        ask("WRITE with immediate", WEFTIO_OPCODE_RDMA_WRITE_IMMEDIATE, {far(0), local(16)}, 0xcafe0002);
        ask("WRITE 2050 with immediate", WEFTIO_OPCODE_RDMA_WRITE_IMMEDIATE, {far(0), local(2050)}, 0xcafe0003);
        reads(9000, 0, [](std::size_t at) {
            return at < 2050 ? of_asker(at) : at >= 5000 && at < 8001 ? of_asker(at - 5000) : of_answerer(at);
        });
    }
    void read()
    {
        ask("READ 0", WEFTIO_OPCODE_RDMA_READ, {remote(0, 0)});
        reads(7, 100001, of_answerer);
        reads(3001, 100000, of_answerer);
        std::uint32_t last = 0;
        for (int each = 0; each < 6; ++each) // more than the four that may be in flight
            last = queue_->post(WEFTIO_OPCODE_RDMA_READ, {far(100000), local(1500, 80000)});
        completes("six READs", last);
        ask("WRITE 8", WEFTIO_OPCODE_RDMA_WRITE, {far(4096), local(8)});
        reads(8, 4096, [](std::size_t at) { return of_asker(at - 4096); });
    }
    void atomics()
    {
        std::uint64_t before = 0;
        const auto answer_is = [&](const char* what, std::uint64_t value) {
            std::memcpy(&before, bytes() + 90000, 8);
            expect(before == value, fmt::format("{} gives {:#x} in place of {:#x}", what, before, value));
        };
        constexpr std::uint64_t swapped = 0x1122334455667788;
        tcp_.meet();
        ask("FETCH_ADD 5", WEFTIO_OPCODE_FETCH_ADD, {far(64), atomic(5), local(8, 90000)});
        answer_is("FETCH_ADD 5", 0);
        ask("CMP_SWAP", WEFTIO_OPCODE_COMPARE_SWAP, {far(64), atomic(swapped, 5), local(8, 90000)});
        answer_is("CMP_SWAP, equal", 5);
        ask("CMP_SWAP", WEFTIO_OPCODE_COMPARE_SWAP, {far(64), atomic(swapped, 5), local(8, 90000)});
        answer_is("CMP_SWAP, unequal", swapped);
    }
    void window()
    {
        const auto key = tcp_.get<std::uint32_t>();
        const segment through = remote(other_.address + 1024, key);
        ask("WRITE through the window", WEFTIO_OPCODE_RDMA_WRITE, {through, local(100)});
        ask("READ through the window", WEFTIO_OPCODE_RDMA_READ, {through, local(100, 80000)});
        expect(std::equal(bytes(), bytes() + 100, bytes() + 80000), "the window has what was written");
        ask("SEND with invalidate", WEFTIO_OPCODE_SEND_INVALIDATE, {local(4)}, key);
        ask("WRITE through the dead window", WEFTIO_OPCODE_RDMA_WRITE, {through, local(100)}, 0,
            WEFTIO_SYNDROME_REMOTE_ACCESS);
        tcp_.meet();
    }
    void big()
    {
        ask("WRITE 100000", WEFTIO_OPCODE_RDMA_WRITE, {far(0), local(65000), local(35000)});
        reads(60000, 0, of_asker);
        reads(40000, 60000, [](std::size_t at) { return of_asker(at < 65000 ? at : at - 65000); });
    }
    void key()
    {
        ask("WRITE, wrong key", WEFTIO_OPCODE_RDMA_WRITE, {remote(other_.address, other_.key ^ 0x55), local(8)}, 0,
            WEFTIO_SYNDROME_REMOTE_ACCESS);
    }
    void bounds()
    {
        queue_->post(WEFTIO_OPCODE_RDMA_WRITE, {far(memory_bytes - 2000), local(3000)});
        ask("WRITE behind one past the end", WEFTIO_OPCODE_RDMA_WRITE, {far(0), local(8)}, 0, WEFTIO_SYNDROME_FLUSHED);
    }
    void denied()
    {
        ask("WRITE to a read-only region", WEFTIO_OPCODE_RDMA_WRITE,
            {remote(other_.address, other_.other_key), local(8)}, 0, WEFTIO_SYNDROME_REMOTE_ACCESS);
    }
    void send_one() { ask("SEND 8", WEFTIO_OPCODE_SEND, {local(8)}); }
    void send_long()
    {
        tcp_.meet();
        // Linux says so with a NAK of its own kind, 0x63; the standard has 0x61.
        ask("SEND 3000 into 1500", WEFTIO_OPCODE_SEND, {local(3000)}, 0, WEFTIO_SYNDROME_REMOTE_OPERATION);
    }
    void mtu()
    {
        ask("WRITE 1024 to a responder of MTU 256", WEFTIO_OPCODE_RDMA_WRITE, {far(0), local(1024)}, 0,
            WEFTIO_SYNDROME_REMOTE_INVALID);
    }

    struct wanted_receive {
        std::uint32_t count;
        std::optional<std::uint32_t> immediate;
        bool written = false; ///< by a WRITE: not in the receive's own memory
        std::uint8_t syndrome = 0;
    };
    /// Waits for one receive, 20 s at most, and holds it against what it should be.
    void receives(const wanted_receive& wanted)
    {
        std::optional<weftio_cqe> cqe;
        for (const auto end = std::chrono::steady_clock::now() + 20s; !cqe && std::chrono::steady_clock::now() < end;)
            if (!(cqe = queue_->received()))
                std::this_thread::sleep_for(200us);
        if (!cqe)
            return expect(false, fmt::format("no receive of {} bytes", wanted.count));
        const std::uint32_t opcode = weftio_cqe_opcode(cqe->publication);
        if (wanted.syndrome != 0)
            return expect(opcode == WEFTIO_CQE_OPCODE_RESPONDER_ERROR, "the receive fails");
        expect(weftio_swap32(cqe->byte_count_be) == wanted.count,
               fmt::format("a receive has {} bytes in place of {}", weftio_swap32(cqe->byte_count_be), wanted.count));
        if (wanted.immediate)
            expect(weftio_swap32(cqe->immediate_be) == *wanted.immediate,
                   fmt::format("an immediate value is {:#x}", weftio_swap32(cqe->immediate_be)));
        for (std::size_t at = 0; !wanted.written && at < wanted.count; ++at)
            if (bytes()[at] != of_asker(at))
                return expect(false,
                              fmt::format("byte {} of a receive of {} is {:#04x}", at, wanted.count, bytes()[at]));
    }
    void are_written(std::size_t at, std::size_t count)
    {
        for (std::size_t each = 0; each < count; ++each)
            if (bytes()[at + each] != of_asker(each))
                return expect(
                    false, fmt::format("byte {} of {} written at {} is {:#04x}", each, count, at, bytes()[at + each]));
    }

    void take_sends()
    {
        for (int each = 0; each < 5; ++each)
            queue_->post_receive({local(memory_bytes)});
        tcp_.meet();
        for (const std::uint32_t count : {0u, 13u, 1024u, 3001u})
            receives({.count = count, .immediate = std::nullopt});
        receives({.count = 5, .immediate = 0xcafe0001});
    }
    void take_writes()
    {
        for (int each = 0; each < 2; ++each)
            queue_->post_receive({local(memory_bytes)});
        tcp_.meet();
        receives({.count = 16, .immediate = 0xcafe0002, .written = true});
        receives({.count = 2050, .immediate = 0xcafe0003, .written = true});
        are_written(0, 2050);
    }
    void take_one() { are_written(0, 0); }
    void take_big()
    {
        std::this_thread::sleep_for(1s);
        are_written(0, 100000);
    }
    void take_atomics()
    {
        std::memset(bytes() + 64, 0, 8);
        tcp_.meet();
    }
    void take_late()
    {
        std::this_thread::sleep_for(150ms);
        queue_->post_receive({local(memory_bytes)});
        receives({.count = 8, .immediate = std::nullopt});
    }
    void take_short()
    {
        queue_->post_receive({local(1500)});
        tcp_.meet();
        receives({.count = 0, .immediate = std::nullopt, .syndrome = WEFTIO_SYNDROME_LOCAL_LENGTH});
    }

    /// Prints what the host hears of failures, and holds the counters against each other.
    void told()
    {
        for (nic::send_outcome outcome = queue_->told(); outcome.syndrome != 0; outcome = queue_->told())
            fmt::print("  {}\n", outcome.text);
        const nic::rdma_counters count = queue_->nic().counters();
        expect(count.requests == count.executed + count.duplicate_request + count.out_of_sequence + count.not_ready +
                                     count.refused + count.ignored,
               "every request is counted once");
        fmt::print("  sent {} packets, {} again; {} requests, {} executed, {} duplicate, {} out of sequence\n",
                   count.packets, count.repeated, count.requests, count.executed, count.duplicate_request,
                   count.out_of_sequence);
        expect(count.repeated == 0 || count.rnr_naks != 0 || count.local_ack_timeout_err != 0,
               "a packet is sent again only when the other end was not ready, or silent for the timeout");
        const nic::rdma_unit& unit = nic::soft(port_).rdma();
        expect(unit.rx_icrc_encapsulated.value() == 0 && unit.malformed.value() == 0, "every packet is whole");
    }

    const bool asks_;
    bool good_ = true;
    port port_;
    device cpu_ = device::open("cpu");
    memory memory_;
    memory_region region_, read_only_;
    const nic::roce_gid gid_;
    const std::unique_ptr<nic::held_rdma_address> own_; ///< before anybody is waited for
    channel tcp_;
    std::unique_ptr<played_pair> queue_;
    meeting other_{};
};

const std::map<std::string, peer::one_case>& peer::cases()
{
    static const std::map<std::string, one_case> all{
        {"send", {&peer::send, &peer::take_sends}},      {"write", {&peer::write, &peer::take_writes}},
        {"read", {&peer::read, &peer::take_one}},        {"atomic", {&peer::atomics, &peer::take_atomics}},
        {"window", {&peer::window, &peer::take_one}},    {"big", {&peer::big, &peer::take_big}},
        {"key", {&peer::key, &peer::take_one}},          {"bounds", {&peer::bounds, &peer::take_one}},
        {"denied", {&peer::denied, &peer::take_one}},    {"rnr", {&peer::send_one, &peer::take_late}},
        {"long", {&peer::send_long, &peer::take_short}}, {"mtu", {&peer::mtu, &peer::take_one, 256}},
    };
    return all;
}

} // namespace

int main(int count, char** words)
{
    if (count < 4)
        return 2;
    const bool asks = std::strcmp(words[3], "-c") == 0 && count > 5;
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    try {
        peer here(words[1], words[2], asks ? words[4] : nullptr);
        for (int at = asks ? 5 : 3; at < count; ++at)
            if (!here.run(words[at]))
                throw std::runtime_error(fmt::format("no case {}", words[at]));
        return here.good() ? 0 : 1;
    } catch (const std::exception& reason) {
        fmt::print("rxe_peer: {}\n", reason.what());
        return 1;
    }
}
