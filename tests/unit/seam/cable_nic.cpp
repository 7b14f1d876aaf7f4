#include "cable_nic.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cable_rdma.hpp"
#include "ports/kinds.hpp"
#include "weftio/clock.hpp"
#include "weftio/error.hpp"

namespace weftio::test {

namespace {

class cable;

struct cable_region final : nic::region {
    cable_region(std::shared_ptr<cable> of, const nic::region_request& wanted);
    ~cable_region() override { revoke(); }

    std::uint32_t key() const noexcept override { return own_key; }
    void revoke() noexcept override;
    std::uint32_t free_windows() noexcept override;
    void renew(const nic::region_request& now) noexcept override;

    std::shared_ptr<cable> port;
    nic::region_request own;
    std::uint32_t own_key = 0;
};

struct cable_rule final : nic::rule {
    cable_rule(std::shared_ptr<cable> of, nic::rule_request wanted); ///< the caller holds the mutex
    ~cable_rule() override;

    flow_hits hits() const override;
    flow_place where() const noexcept override { return flow_place::driver; }
    bool matches(const std::vector<std::uint8_t>& frame) const;

    std::shared_ptr<cable> port;
    nic::rule_request request;
    flow_hits seen;
};

struct cable_receive_queue final : nic::receive_queue {
    cable_receive_queue(std::shared_ptr<cable> of, const nic::receive_ring& at);

    std::uint32_t number() const noexcept override { return own_number; }
    unsigned engine() const noexcept override { return 0; }
    void move_to(unsigned) override {} // there is one engine
    nic::inline_turn turn() noexcept override;
    std::uint32_t ring_number() const noexcept override { return rings; }
    void stop(std::uint32_t which) override;
    std::string describe(std::uint32_t which) const override;
    void close() noexcept override;
    eth_rxq_counters counters() const override;
    void restart(const nic::receive_ring& next) override;
    /// Returns whether there was a slot for the frame.
    bool put(const std::vector<std::uint8_t>& frame);

    std::shared_ptr<cable> port;
    nic::receive_ring ring;
    std::uint32_t own_number = 0, rings = 0, filled = 0;
    bool stopped = false;
    eth_rxq_counters counts;
};

struct cable_send_queue final : nic::eth_send_queue {
    cable_send_queue(std::shared_ptr<cable> of, const nic::send_ring& at);

    std::uint32_t number() const noexcept override { return own_number; }
    unsigned engine() const noexcept override { return 0; }
    void move_to(unsigned) override {} // there is one engine
    std::uint64_t* doorbell() const noexcept override { return static_cast<std::uint64_t*>(bell.at.device); }
    nic::inline_turn turn() noexcept override;
    std::uint32_t ring_number() const noexcept override { return rings; }
    void stop(std::uint32_t which) override;
    std::string describe(std::uint32_t which) const override;
    void close() noexcept override;
    eth_txq_counters counters() const override;
    schedule_error schedule() const override { return {}; }
    bool failed() const override;
    void stop_sending() override;
    void restart(const nic::send_ring& next) override;
    bool next(nic::send_outcome& outcome) override;
    unsigned execute_all();
    std::uint8_t execute(const std::uint32_t* entry);
    void publish(std::uint32_t opcode, std::uint8_t syndrome);

    std::shared_ptr<cable> port;
    nic::send_ring ring;
    devices::memory_block bell; ///< of this NIC: what it looks at before it reads a record, as hardware does
    std::uint64_t heard = 0;
    std::uint32_t own_number = 0, rings = 0, done = 0;
    bool in_error = false;
    eth_txq_counters counts;
    std::deque<nic::send_outcome> outcomes;
};

/// One lock for all: it need not be fast.
class cable final : public nic::backend, public cable_tables, public std::enable_shared_from_this<cable> {
 public:
    cable(std::string spec, const port_options& options)
        : spec_(std::move(spec)), has_rdma_(spec_ != "cable:ethernet"),
          inline_(options.mode == engine_mode::inline_worker)
    {
        late = spec_ == "cable:late";
        if (!inline_)
            thread_ = std::thread([this] {
                while (!ending_.load())
                    if (turn() == 0)
                        std::this_thread::sleep_for(std::chrono::microseconds(50));
            });
    }
    ~cable() override
    {
        ending_ = true;
        if (thread_.joinable())
            thread_.join();
    }

    const std::string& spec() const noexcept override { return spec_; }
    const std::string& driver() const noexcept override { return driver_; }
    std::array<std::uint8_t, 6> mac() const noexcept override { return {2, 0, 0, 0, 0, 1}; }
    std::uint16_t mtu() const noexcept override { return 1500; }
    bool link_up() const noexcept override { return true; }
    port_counters counters() override
    {
        const std::scoped_lock lock(mutex);
        return counts;
    }
    bool exhausted() const noexcept override { return false; }
    bool gone() const noexcept override { return false; }
    unsigned engine_count() const noexcept override { return 1; }
    bool is_inline() const noexcept override { return inline_; }
    unsigned turn() override
    {
        const std::scoped_lock lock(mutex);
        unsigned moved = 0;
        for (cable_send_queue* queue : senders)
            moved += queue->execute_all();
        return moved + execute_pairs(*this);
    }
    unsigned turn(unsigned) override { return turn(); }
    nic::payload_arrival arrival() const noexcept override
    {
        return late ? nic::payload_arrival::when_flushed : nic::payload_arrival::by_platform;
    }

    std::unique_ptr<nic::region> register_memory(const nic::region_request& wanted) override
    {
        return std::make_unique<cable_region>(shared_from_this(), wanted);
    }
    std::shared_ptr<nic::receive_queue> make_receive_queue(const nic::receive_ring& ring, int) override
    {
        return std::make_shared<cable_receive_queue>(shared_from_this(), ring);
    }
    std::shared_ptr<nic::eth_send_queue> make_send_queue(const nic::send_ring& ring, int) override
    {
        return std::make_shared<cable_send_queue>(shared_from_this(), ring);
    }
    std::shared_ptr<nic::completion_queue> make_completion_queue(const nic::completion_memory& memory) override
    {
        return has_rdma_ ? make_cable_completions(shared_from_this(), *this, memory)
                         : backend::make_completion_queue(memory);
    }
    std::shared_ptr<nic::rdma_queue> make_rdma_queue(const nic::rdma_rings& rings, rdma_service service) override
    {
        return has_rdma_ ? make_cable_pair(shared_from_this(), *this, rings, service)
                         : backend::make_rdma_queue(rings, service);
    }
    std::unique_ptr<nic::window> make_window(window_type type, protection_domain domain) override
    {
        return has_rdma_ ? make_cable_window(shared_from_this(), *this, type, domain)
                         : backend::make_window(type, domain);
    }
    std::unique_ptr<nic::held_rdma_address> add_rdma_address(const nic::rdma_own_address& own) override
    {
        return has_rdma_ ? hold_cable_address(shared_from_this(), *this, own) : backend::add_rdma_address(own);
    }
    std::vector<std::unique_ptr<nic::rule>> install(std::span<const nic::rule_request> wanted) override;
    /// A frame has come.
    void arrive(const std::vector<std::uint8_t>& frame)
    {
        ++counts.received;
        counts.received_bytes += frame.size();
        auto drop = [&](drop_reason why) { ++counts.dropped[static_cast<std::size_t>(why)]; };
        auto found = std::find_if(rules.begin(), rules.end(), [&](cable_rule* each) { return each->matches(frame); });
        if (found == rules.end())
            return drop(drop_reason::no_match);
        ++(*found)->seen.packets;
        (*found)->seen.bytes += frame.size();
        if ((*found)->request.action == flow_kind::drop)
            return drop(drop_reason::dropped_by_flow);
        auto queue = receivers.find((*found)->request.queues.front());
        if (queue == receivers.end())
            return drop(drop_reason::queue_closed);
        if (!queue->second->put(frame))
            return drop(drop_reason::out_of_buffer);
        ++counts.delivered;
    }

    std::map<std::uint32_t, cable_receive_queue*> receivers;
    std::vector<cable_send_queue*> senders;
    std::vector<cable_rule*> rules; ///< in the order of decision
    port_counters counts;

 private:
    const std::string spec_, driver_ = "cable";
    const bool has_rdma_, inline_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

template <class Queue>
nic::inline_turn turn_of(Queue& queue) noexcept
{
    if (!queue.port->is_inline())
        return {};
    return {.turn = [](void* at) { static_cast<Queue*>(at)->port->turn(); }, .context = &queue};
}

template <class Queue>
std::string words_of(const Queue& queue, const char* kind, std::uint32_t which)
{
    const std::scoped_lock lock(queue.port->mutex);
    return fmt::format("{} {} on {}{}", kind, queue.own_number, queue.port->spec(),
                       which == queue.rings ? "" : ": reset or closed meanwhile");
}

cable_region::cable_region(std::shared_ptr<cable> of, const nic::region_request& wanted)
    : port(std::move(of)), own(wanted)
{
    const std::scoped_lock lock(port->mutex);
    if (own.process_key == 0) // no entry names the memory
        return;
    own_key = port->last_key += 0x101; // not the process's: this NIC has a table of its own
    port->keys[own_key] = &own;
}

void cable_region::revoke() noexcept
{
    const std::scoped_lock lock(port->mutex);
    port->push_ahead(*own.block);
    port->keys.erase(own_key);
    port->ending.erase(own_key);
}

std::uint32_t cable_region::free_windows() noexcept
{
    return free_cable_windows(*port, own_key);
}

void cable_region::renew(const nic::region_request& now) noexcept
{
    const std::scoped_lock lock(port->mutex);
    own = now;
    own_key = port->last_key += 0x101;
    port->keys[own_key] = &own;
}

std::vector<std::unique_ptr<nic::rule>> cable::install(std::span<const nic::rule_request> wanted)
{
    for (const auto& [match, action, queues, key, priority] : wanted)
        if (match.vlan || match.ipv4_source || match.source_port || match.ip_protocol)
            throw error(errc::not_supported, "weftio: flow: this NIC matches ether_type only; leave the others out");
    std::vector<std::unique_ptr<nic::rule>> made;
    const std::scoped_lock lock(mutex);
    for (const nic::rule_request& each : wanted)
        made.push_back(std::make_unique<cable_rule>(shared_from_this(), each));
    return made;
}

cable_rule::cable_rule(std::shared_ptr<cable> of, nic::rule_request wanted)
    : port(std::move(of)), request(std::move(wanted))
{
    auto later = [&](const cable_rule* each) { return each->request.priority > request.priority; };
    port->rules.insert(std::find_if(port->rules.begin(), port->rules.end(), later), this);
}

cable_rule::~cable_rule()
{
    const std::scoped_lock lock(port->mutex);
    std::erase(port->rules, this);
}

flow_hits cable_rule::hits() const
{
    const std::scoped_lock lock(port->mutex);
    return seen;
}

bool cable_rule::matches(const std::vector<std::uint8_t>& frame) const
{
    return !request.match.ether_type || *request.match.ether_type == (frame[12] << 8 | frame[13]);
}

cable_receive_queue::cable_receive_queue(std::shared_ptr<cable> of, const nic::receive_ring& at)
    : port(std::move(of)), ring(at)
{
    const std::scoped_lock lock(port->mutex);
    own_number = port->last_number += 7;
    port->receivers[own_number] = this;
}

nic::inline_turn cable_receive_queue::turn() noexcept
{
    return turn_of(*this);
}

void cable_receive_queue::stop(std::uint32_t which)
{
    const std::scoped_lock lock(port->mutex);
    stopped = stopped || which == rings;
}

std::string cable_receive_queue::describe(std::uint32_t which) const
{
    return words_of(*this, "eth_rxq", which);
}

void cable_receive_queue::close() noexcept
{
    const std::scoped_lock lock(port->mutex);
    port->receivers.erase(own_number);
    ++rings;
}

eth_rxq_counters cable_receive_queue::counters() const
{
    const std::scoped_lock lock(port->mutex);
    return counts;
}

void cable_receive_queue::restart(const nic::receive_ring& next)
{
    const std::scoped_lock lock(port->mutex);
    ring = next;
    ++rings;
    filled = 0;
    stopped = false;
}

bool cable_receive_queue::put(const std::vector<std::uint8_t>& frame)
{
    const std::uint32_t posted = weftio_swap32(weftio_load_acquire_sys_u32(ring.dbrec.cpu<std::uint32_t>()));
    if (stopped || ((posted - filled) & 0xffff) == 0) {
        ++counts.out_of_buffer;
        return false;
    }
    const std::uint32_t slot = filled & (ring.depth - 1);
    std::byte* const begin = ring.slots.cpu<std::byte>() + std::size_t{slot} * ring.stride_bytes;
    std::memcpy(begin, frame.data(), frame.size());
    std::memset(begin + frame.size(), 0, ring.zeroed_bytes);
    weftio_cqe& completion = ring.completions.cpu<weftio_cqe>()[slot];
    completion.byte_count_be = weftio_swap32(static_cast<std::uint32_t>(frame.size()));
    completion.hds_ip_ext = WEFTIO_CQE_L2_OK;
    completion.timestamp_be = weftio_swap64(weftio_real_time_from_ns(utc_now_ns()));
    weftio_store_release_sys_u32(&completion.publication,
                                 weftio_cqe_publication(slot, WEFTIO_CQE_OPCODE_RESPONDER_SEND, filled / ring.depth));
    ++filled;
    ++counts.delivered;
    counts.delivered_bytes += frame.size();
    return true;
}

cable_send_queue::cable_send_queue(std::shared_ptr<cable> of, const nic::send_ring& at)
    : port(std::move(of)), ring(at), bell(at.entries.block->owner)
{
    bell.at = bell.owner->allocate(sizeof heard, 64, bell.kind);
    bell.bytes = sizeof heard;
    const std::scoped_lock lock(port->mutex);
    own_number = port->last_number += 7;
    port->senders.push_back(this);
}

nic::inline_turn cable_send_queue::turn() noexcept
{
    return turn_of(*this);
}

void cable_send_queue::stop(std::uint32_t which)
{
    if (which == ring_number())
        stop_sending();
}

std::string cable_send_queue::describe(std::uint32_t which) const
{
    return words_of(*this, "eth_txq", which);
}

void cable_send_queue::close() noexcept
{
    const std::scoped_lock lock(port->mutex);
    std::erase(port->senders, this);
    ++rings;
}

eth_txq_counters cable_send_queue::counters() const
{
    const std::scoped_lock lock(port->mutex);
    return counts;
}

bool cable_send_queue::failed() const
{
    const std::scoped_lock lock(port->mutex);
    return in_error;
}

void cable_send_queue::stop_sending()
{
    const std::scoped_lock lock(port->mutex);
    in_error = true;
}

void cable_send_queue::restart(const nic::send_ring& next)
{
    const std::scoped_lock lock(port->mutex);
    ring = next;
    ++rings;
    done = 0;
    in_error = false;
    heard = ~std::uint64_t{0}; // what the doorbell says belongs to the ring before
}

bool cable_send_queue::next(nic::send_outcome& outcome)
{
    const std::scoped_lock lock(port->mutex);
    if (outcomes.empty())
        return false;
    outcome = std::move(outcomes.front());
    outcomes.pop_front();
    return true;
}

/// All that the record names, once the doorbell has been rung. Returns how many entries that were.
unsigned cable_send_queue::execute_all()
{
    const std::uint64_t rung = weftio_load_acquire_sys_u64(static_cast<const std::uint64_t*>(bell.at.cpu));
    if (std::exchange(heard, rung) == rung)
        return 0;
    const std::uint32_t committed = weftio_swap32(weftio_load_acquire_sys_u32(ring.dbrec.cpu<std::uint32_t>()));
    unsigned executed = 0;
    for (; ((committed - done) & 0xffff) != 0; ++done, ++executed) {
        ++counts.enqueued;
        if (in_error) {
            ++counts.flushed;
            continue;
        }
        const std::uint8_t syndrome =
            execute(ring.entries.cpu<std::uint32_t>() + std::size_t{done & (ring.depth - 1)} * 16);
        if (syndrome == 0) {
            publish(WEFTIO_CQE_OPCODE_REQUESTER, 0);
            continue;
        }
        in_error = true;
        ++counts.failed;
        publish(WEFTIO_CQE_OPCODE_REQUESTER_ERROR, syndrome);
        outcomes.push_back({.position = done,
                            .syndrome = syndrome,
                            .text = fmt::format("weftio: eth_txq {}: entry at position {} failed: syndrome {:#x}",
                                                own_number, done, syndrome),
                            .time_ns = utc_now_ns()});
    }
    return executed;
}

/// A SEND of one piece, which is all that this NIC knows. Returns the syndrome; 0: it was sent.
std::uint8_t cable_send_queue::execute(const std::uint32_t* entry)
{
    const std::uint32_t first = weftio_swap32(entry[0]), second = weftio_swap32(entry[1]);
    if (first != ((done & 0xffff) << 8 | WEFTIO_OPCODE_SEND) || second != (own_number << 8 | 3))
        return WEFTIO_SYNDROME_LOCAL_QP_OPERATION;
    weftio_wqe_data_segment data;
    std::memcpy(&data, entry + 8, sizeof data);
    const std::uint32_t bytes = weftio_swap32(data.byte_count_be);
    const auto found = port->keys.find(weftio_swap32(data.lkey_be));
    if (found == port->keys.end() || found->second->domain != ring.domain)
        return WEFTIO_SYNDROME_LOCAL_PROTECTION;
    const nic::region_request& region = *found->second;
    const std::uint64_t offset = weftio_swap64(data.address_be) - region.address;
    if (bytes < 14 || offset > region.bytes || bytes > region.bytes - offset)
        return WEFTIO_SYNDROME_LOCAL_PROTECTION;
    const auto* begin = static_cast<const std::uint8_t*>(region.block->at.cpu) + region.offset + offset;
    port->arrive({begin, begin + bytes});
    ++counts.sent;
    counts.sent_bytes += bytes;
    return 0;
}

void cable_send_queue::publish(std::uint32_t opcode, std::uint8_t syndrome)
{
    auto& completion = *ring.completion.cpu<weftio_cqe>();
    completion.timestamp_be = weftio_swap64(syndrome);
    weftio_store_release_sys_u32(&completion.publication, weftio_cqe_publication(done & 0xffff, opcode, 0));
}

} // namespace

void add_cable_nic()
{
    ports::add_kind({.prefix = "cable:", .open = [](std::string_view spec, const port_options& options) {
                         return std::shared_ptr<nic::backend>(std::make_shared<cable>(std::string(spec), options));
                     }});
}

} // namespace weftio::test
