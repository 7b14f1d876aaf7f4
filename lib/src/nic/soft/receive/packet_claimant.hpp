// Who takes packets of a port before its rules do: a transport of the engine.
#pragma once

struct rte_mbuf;

namespace weftio::nic {

struct packet_headers;

/// The receiver of the same engine calls it, in its turn.
class packet_claimant {
 public:
    /// Whether the packet is the claimant's.
    virtual bool claims(const rte_mbuf& mbuf, const packet_headers& headers) const noexcept = 0;
    /// Takes what there is to take from the packet; the receiver frees it afterwards.
    virtual void take(rte_mbuf& mbuf, const packet_headers& headers) = 0;

 protected:
    ~packet_claimant() = default;
};

} // namespace weftio::nic
