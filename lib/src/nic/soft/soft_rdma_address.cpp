#include "nic/soft/soft_rdma_address.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace weftio::nic::soft {

soft_rdma_address::soft_rdma_address(std::shared_ptr<soft_port> port, const rdma_own_address& own)
    : port_(std::move(port)), own_(own)
{
    port_->require_nobody_has(own_.address, wires::most_members);
    port_->engines().between_all_turns([&] {
        port_->engines().directory().add_address(own_);
        for (unsigned engine = 0; own_.trace && engine != port_->engine_count(); ++engine)
            port_->rdma(engine).trace_packets();
        port_->announce_first_address();
    });
    try { // if two processes have checked at the same time, the one with the lower slot keeps the address
        port_->require_nobody_has(own_.address, port_->slot());
    } catch (...) {
        remove();
        throw;
    }
}

soft_rdma_address::~soft_rdma_address()
{
    remove();
}

void soft_rdma_address::remove()
{
    if (port_->may_end())
        port_->engines().between_all_turns([&] {
            port_->engines().directory().remove_address(own_.address);
            port_->announce_first_address();
        });
}

/// Opens a question; the destructor closes it.
class soft_rdma_address::open_question {
 public:
    open_question(soft_port& port, const net::roce_gid& from, const net::roce_gid& target)
        : port_(port), from_(from), target_(target)
    {
        port_.engines().between_all_turns([&] { all().open(from_, target_); });
    }
    open_question(const open_question&) = delete;
    open_question& operator=(const open_question&) = delete;
    ~open_question()
    {
        port_.engines().between_all_turns([&] { all().close(from_, target_); });
    }

    void ask()
    {
        port_.engine().between_turns([&] { port_.rdma().ask(from_, target_); });
    }
    std::optional<net::mac_address> answer()
    {
        if (port_.is_inline())
            port_.turn();
        return port_.engine().between_turns([&] { return all().answer_to(from_, target_); });
    }

 private:
    /// Its engine is the first one, see roce_directory::neighbors_home().
    neighbors& all() const noexcept { return port_.engines().directory().addresses(); }

    soft_port& port_;
    const net::roce_gid from_, target_;
};

/// Asks, and waits for the answer.
std::optional<net::mac_address> soft_rdma_address::ask_once(open_question& question, clock::time_point until)
{
    question.ask();
    std::optional<net::mac_address> mac = question.answer();
    while (!mac && clock::now() < until && !port_->gone()) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        mac = question.answer();
    }
    return mac;
}

std::optional<net::mac_address> soft_rdma_address::known(const net::roce_gid& peer)
{
    roce_directory& directory = port_->engines().directory();
    std::optional<net::mac_address> mac = directory.heard().mac_of(peer, std::chrono::steady_clock::now());
    if (!mac)
        mac = port_->engine().between_turns([&] { return directory.addresses().own_mac(peer); });
    // A member of the wire may have too little processor time to answer.
    if (!mac && own_.vlan_tci == no_vlan)
        mac = port_->mac_on_wire(peer);
    return mac;
}

std::optional<net::mac_address> soft_rdma_address::resolve(const net::roce_gid& peer,
                                                           std::chrono::milliseconds patience)
{
    constexpr std::chrono::milliseconds pause{1000}; // RFC 4861: RetransTimer
    std::optional<net::mac_address> mac = known(peer);
    if (mac)
        return mac;
    open_question question(*port_, own_.address, peer);
    for (bool again = true; again; patience -= pause) {
        mac = ask_once(question, clock::now() + std::min(patience, pause));
        again = !mac && patience > pause && !port_->gone();
    }
    return mac;
}

std::optional<bool> soft_rdma_address::has_left(const net::mac_address& host) const
{
    const dpdk::shared_wire* const shared = port_->device().shared();
    return shared ? std::optional(shared->member().has_left(host)) : std::nullopt;
}

} // namespace weftio::nic::soft
