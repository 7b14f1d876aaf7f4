// A claimant takes packets of a port before the rules of the port apply: a transport of the engine.
#pragma once

struct rte_mbuf;

namespace weftio::net {
struct packet_headers;
}

namespace weftio::nic::soft {

/// The receiver asks its claimants in the order in which they were admitted. It parses the headers of a packet once,
/// before it asks.
class packet_claimant {
 public:
    /// Whether the claimant takes this packet.
    virtual bool claims(const rte_mbuf& mbuf, const net::packet_headers& headers) const noexcept = 0;
    /// Processes the packet. @return true: the claimant keeps the mbuf; false: the receiver frees it
    virtual bool take(rte_mbuf& mbuf, const net::packet_headers& headers) = 0;

 protected:
    ~packet_claimant() = default;
};

} // namespace weftio::nic::soft
