#include "cable_rdma.hpp"

#include <bit>
#include <utility>

#include <fmt/format.h>

#include "cable_pair.hpp"
#include "weftio/clock.hpp"
#include "weftio/error.hpp"

namespace weftio::test {

void write_completion(weftio_cqe& to, const cable_completion& what, std::uint32_t pass)
{
    to.user_index_be = weftio_swap32(what.user_index);
    to.immediate_be = weftio_swap32(what.immediate);
    to.byte_count_be = weftio_swap32(what.bytes);
    to.timestamp_be = weftio_swap64(what.syndrome != 0 ? what.syndrome : weftio_real_time_from_ns(utc_now_ns()));
    to.sop_drop_qpn_be = weftio_swap32(what.entry_opcode << 24 | what.queue);
    const std::uint32_t solicited = what.solicited ? std::uint32_t{WEFTIO_CQE_SOLICITED} << 24 : 0;
    weftio_store_release_sys_u32(&to.publication,
                                 weftio_cqe_publication(what.index & 0xffff, what.opcode, pass) | solicited);
}

cable_pair::cable_pair(std::shared_ptr<nic::backend> port, cable_tables& tables, const nic::rdma_rings& rings,
                       rdma_service service)
    : port_(std::move(port)), tables_(tables), rings_(rings), bell_(rings.send.entries.block->owner),
      sends_(queue_of(rings.send.completions)), receives_(queue_of(rings.receive.target))
{
    if (service != rdma_service::reliable)
        throw error(errc::not_supported, "weftio: rdma_queue: this NIC has reliable connections only");
    bell_.at = bell_.owner->allocate(sizeof nothing_rung, 64, bell_.kind);
    bell_.bytes = sizeof nothing_rung;
    const std::scoped_lock lock(tables_.mutex);
    number_ = tables_.last_number += 7;
    tables_.pairs[number_] = this;
    begin_rings();
}

cable_completions* cable_pair::queue_of(const nic::completion_target& target) const
{
    auto* const queue = dynamic_cast<cable_completions*>(target.queue.get());
    if (target.queue && (!queue || &queue->tables != &tables_))
        throw error(errc::invalid_argument, "weftio: rdma_queue: its completion queue belongs to another port; create "
                                            "both at one port");
    return queue;
}

void cable_pair::begin_rings()
{
    std::atomic_ref(*static_cast<std::uint64_t*>(bell_.at.cpu)).store(nothing_rung);
    submitted_ = done_ = received_ = 0;
}

void cable_pair::stop(std::uint32_t ring)
{
    const std::scoped_lock lock(tables_.mutex);
    if (ring == ring_number_)
        fail();
}

std::string cable_pair::describe(std::uint32_t ring) const
{
    const std::scoped_lock lock(tables_.mutex);
    return fmt::format("rdma_queue {} on {}{}", number_, port_->spec(),
                       ring == ring_number_ ? "" : ": reset or closed meanwhile");
}

void cable_pair::close() noexcept
{
    const std::scoped_lock lock(tables_.mutex);
    tables_.pairs.erase(number_);
    ++ring_number_;
}

void cable_pair::restart(const nic::rdma_rings& rings)
{
    cable_completions *const sends = queue_of(rings.send.completions), *const receives = queue_of(rings.receive.target);
    const std::scoped_lock lock(tables_.mutex);
    rings_ = rings;
    sends_ = sends;
    receives_ = receives;
    state_ = rdma_state::init;
    ++ring_number_;
    begin_rings();
}

bool cable_pair::next(nic::send_outcome& outcome)
{
    const std::scoped_lock lock(tables_.mutex);
    if (outcomes_.empty())
        return false;
    outcome = std::move(outcomes_.front());
    outcomes_.pop_front();
    return true;
}

namespace {

void require_sound(const nic::rdma_connection& to)
{
    if (!std::has_single_bit(to.path_mtu) || to.path_mtu < 256 || to.path_mtu > 1024)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_queue: the path MTU is {}; set 256, 512 or 1024", to.path_mtu));
}

} // namespace

void cable_pair::modify(rdma_state to, const nic::rdma_connection& how)
{
    if (to != rdma_state::reset && to != rdma_state::error)
        require_sound(how);
    const std::scoped_lock lock(tables_.mutex);
    if (to == rdma_state::error)
        return fail();
    to_ = how;
    state_ = to;
    if (to == rdma_state::reset)
        begin_rings();
    else if (to == rdma_state::ready_to_send)
        read_doorbell_record(); // what was rung before
}

nic::rdma_queue::standing cable_pair::state() const
{
    const std::scoped_lock lock(tables_.mutex);
    return {.state = state_, .draining = false}; // an entry that was begun ends in the same turn
}

rdma_counters cable_pair::counters() const
{
    const std::scoped_lock lock(tables_.mutex);
    return counts_;
}

std::uint32_t cable_pair::windows() const
{
    const std::scoped_lock lock(tables_.mutex);
    std::uint32_t kept_by = 0;
    for (const auto& [index, window] : tables_.windows)
        kept_by += window->keeps(number_);
    return kept_by;
}

/// Reads the record. Acquire: what it names is written.
void cable_pair::read_doorbell_record()
{
    submitted_ = weftio_swap32(weftio_load_acquire_sys_u32(rings_.send.dbrec.cpu<std::uint32_t>()));
}

/// Without an entry that has failed.
void cable_pair::fail()
{
    if (std::exchange(state_, rdma_state::error) == rdma_state::error || sends_)
        return;
    write_completion(*rings_.send.completion.cpu<weftio_cqe>(),
                     {.queue = number_,
                      .opcode = WEFTIO_CQE_OPCODE_REQUESTER_ERROR,
                      .index = done_,
                      .syndrome = WEFTIO_SYNDROME_FLUSHED},
                     0);
}

namespace {

class cable_address final : public nic::held_rdma_address {
 public:
    cable_address(std::shared_ptr<nic::backend> port, cable_tables& tables, const nic::rdma_own_address& own)
        : port_(std::move(port)), tables_(tables), own_(own.address)
    {
        const std::scoped_lock lock(tables_.mutex);
        if (!tables_.addresses.emplace(own.address, own.mac).second)
            throw error(errc::in_use, fmt::format("weftio: rdma_device: port {} has that address already; give another",
                                                  port_->spec()));
    }
    ~cable_address() override
    {
        const std::scoped_lock lock(tables_.mutex);
        tables_.addresses.erase(own_);
    }
    /// Of addresses at this port only: the cable ends here.
    std::optional<std::array<std::uint8_t, 6>> resolve(const std::array<std::uint8_t, 16>& peer,
                                                       std::chrono::milliseconds) override
    {
        const std::scoped_lock lock(tables_.mutex);
        const auto found = tables_.addresses.find(peer);
        return found == tables_.addresses.end() ? std::nullopt : std::optional(found->second);
    }

 private:
    const std::shared_ptr<nic::backend> port_;
    cable_tables& tables_;
    const std::array<std::uint8_t, 16> own_;
};

} // namespace

std::shared_ptr<nic::completion_queue> make_cable_completions(std::shared_ptr<nic::backend> port, cable_tables& tables,
                                                              const nic::completion_memory& memory)
{
    return std::make_shared<cable_completions>(std::move(port), tables, memory);
}

std::shared_ptr<nic::rdma_queue> make_cable_pair(std::shared_ptr<nic::backend> port, cable_tables& tables,
                                                 const nic::rdma_rings& rings, rdma_service service)
{
    return std::make_shared<cable_pair>(std::move(port), tables, rings, service);
}

std::unique_ptr<nic::held_rdma_address> hold_cable_address(std::shared_ptr<nic::backend> port, cable_tables& tables,
                                                           const nic::rdma_own_address& own)
{
    return std::make_unique<cable_address>(std::move(port), tables, own);
}

unsigned execute_pairs(cable_tables& tables)
{
    unsigned executed = 0;
    for (const auto& [number, pair] : tables.pairs)
        executed += pair->execute_all();
    for (const auto& [number, pair] : tables.pairs) {
        pair->end_if_overrun();
        pair->flush_receives();
    }
    for (cable_completions* each : tables.completions)
        each->tell();
    return executed;
}

} // namespace weftio::test
