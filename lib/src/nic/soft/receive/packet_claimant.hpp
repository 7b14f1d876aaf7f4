// Who takes packets of a port before its rules do: a transport of the engine.
#pragma once

struct rte_mbuf;

namespace weftio::net {
struct packet_headers;
}

namespace weftio::nic::soft {

/// The receiver asks its claimants one after the other, in the order in which they were admitted. It reads the headers
/// of a packet once, before it asks.
class packet_claimant {
 public:
    /// Whether the packet is the claimant's.
    virtual bool claims(const rte_mbuf& mbuf, const net::packet_headers& headers) const noexcept = 0;
    /// Takes what there is to take from the packet; the receiver frees it afterwards.
    virtual void take(rte_mbuf& mbuf, const net::packet_headers& headers) = 0;

 protected:
    ~packet_claimant() = default;
};

} // namespace weftio::nic::soft
