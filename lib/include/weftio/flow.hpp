// Which packets go to which queue.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weftio/counters.hpp"
#include "weftio/eth_rxq.hpp"
#include "weftio/flow_match.hpp"
#include "weftio/port.hpp"

namespace weftio {

/// What happens to matching packets. Points to queue objects, which must not be moved or destroyed before a flow has
/// been made from the action; afterwards they may be moved.
struct flow_action {
    using kind = flow_kind;
    kind what = kind::drop;
    std::vector<const eth_rxq*> queues{};
    rss_key key = rss_key::standard;

    static flow_action to(const eth_rxq& queue) { return {kind::queue, {&queue}, rss_key::standard}; }
    static flow_action to(const eth_rxq&& queue) = delete; ///< a temporary would be destroyed before the first packet
    /// Distributes packets by Toeplitz hash over the addresses, and ports if there are any; packets without an IP
    /// header go to the first queue.
    static flow_action rss(std::vector<const eth_rxq*> queues, rss_key key = rss_key::standard)
    {
        return {kind::rss, std::move(queues), key};
    }
    static flow_action drop() { return {}; }
};

/// Match, action and priority of one rule, for flow::install().
struct flow_rule {
    flow_match match{};
    flow_action action{};
    std::uint32_t priority = 0;
};

/// A rule of a port: sends matching packets to queues, or drops them. Of several matching rules the one with the lowest
/// `priority` number decides; of equal ones the oldest.
///
/// The first rule of a port starts its traffic: until then, packets wait in the driver. A program that needs several
/// rules makes them in one step with install(), so that no packet meets some of them only.
///
/// - Ownership: move-only; the rule ends with the object. Keeps the port alive. If a queue is destroyed first, the rule
///   drops what it would send there and counts it as `queue_closed`.
/// - Threads: any, one at a time, while the port runs.
/// - Offload: the driver executes the rule, which saves the engine's time, while all of this holds (see where()):
///     - the rule drops. The engine executes rules that send to one queue or to several (RSS): a driver can choose only
///       among the port's own receive queues, one for each engine, and not among those that kernels own
///     - the driver takes the pattern, the drop and a count of packets and bytes. It is asked once. It is not asked for
///       `vlan` 0xffff, for a port range whose length is no power of two or that begins at no multiple of it, and for
///       ports and TCP flags that are compared with 0 only
///     - no rule that decides earlier might match the same packet. The rule goes to the engine when such a rule is
///       made, and back to the driver when that rule ends
///   What the driver drops never reaches the port: hits() counts it, port_counters does not. Drivers read headers their
///   own way: they may drop a matching packet whose lengths are wrong, which the engine would not match.
class flow {
 public:
    /// @throws weftio::error errc::invalid_argument
    ///     - no queue given, more than the action takes (to: 1, rss: 128, drop: none), a null one, one that has been
    ///       moved from, one of another port, or a key that is none
    ///     - a prefix longer than its address, IPv4 and IPv6 addresses in one rule, or addresses that `ether_type` does
    ///       not carry
    ///     - a port range that ends before it starts, ports with an `ip_protocol` other than UDP or TCP
    ///     - `tcp_flags` with an `ip_protocol` other than TCP
    ///     - a `vlan` in 4096..0xfffe
    /// @throws weftio::error errc::device_error the driver fails to end a rule that it executes and that would drop
    ///         packets of this one
    [[nodiscard]] flow(const port& port, const flow_match& match, const flow_action& action,
                       std::uint32_t priority = 0);
    /// Makes several rules in one step, or none: every packet meets all of them, or none of them. `rules` are in the
    /// order of their age, the oldest first. Blocks as the constructor does. Returns one flow for each rule, in the
    /// same order; none for no rules. Each rule ends with its own flow.
    /// @throws weftio::error as the constructor does; of several rules, the text says which one is at fault by its
    ///         number, which begins at 1
    [[nodiscard]] static std::vector<flow> install(const port& port, const std::vector<flow_rule>& rules);
    flow(flow&&) noexcept;
    flow& operator=(flow&&) noexcept;
    ~flow();

    /// Any thread. Never blocks while the engine executes the rule. Otherwise asks the driver: blocks for as long as
    /// the driver takes, and while another rule of the port is made. Some drivers answer with a count that is up to a
    /// second old. When a rule goes from the driver to the engine, packets that the driver drops after its last answer
    /// are not counted; nor when the device is removed.
    flow_hits hits() const;
    /// Whether the driver or the engine executes the rule now; it changes only when rules of the port are made or end.
    /// Any thread; never blocks. WEFTIO_LOG=debug shows why the driver does not execute a rule.
    flow_place where() const noexcept;

 private:
    struct state;
    explicit flow(std::unique_ptr<state> state) noexcept;

    std::unique_ptr<state> state_;
};

} // namespace weftio
