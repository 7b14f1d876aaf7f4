// A peer that writes into registered memory, over the loopback of a port.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "patience.hpp"
#include "unit/rdma/posted_ends.hpp"

namespace weftio::test {

inline constexpr access peer_writes = access::local_write | access::remote_write;
inline constexpr std::size_t written_bytes = 512;

/// Two ends of one port with an engine thread, which has nothing to do but what they ask for.
struct peers {
    port at = port::open("loopback");
    device cpu = device::open("cpu");
    rdma_device target{at, {.address = "10.0.0.1"}}, writer{at, {.address = "10.0.0.2"}};
    end_memory source{at, cpu, 4096, {}};
};

/// A connection by which the peer writes. A request that is refused ends it.
class writing_peer {
 public:
    explicit writing_peer(peers& all, completion_queue_options options = {.entries = 256})
        : all_(all), completions_(all.at, all.cpu, std::move(options)),
          target_(all.target, all.cpu, completions_, completions_),
          writer_(all.writer, all.cpu, completions_, completions_)
    {
        connect();
    }
    completion_queue& completions() { return completions_; }
    queue_pair& pair() { return *writer_; }
    void write(const void* at, std::uint32_t rkey, std::size_t bytes = written_bytes)
    {
        ++open_;
        writer_.post(WEFTIO_OPCODE_RDMA_WRITE,
                     {remote(reinterpret_cast<std::uint64_t>(at), rkey), all_.source.local(0, bytes)});
    }
    /// Waits until nothing is under way. Returns whether all writes have been executed; else the peer connects again.
    bool settle()
    {
        std::array<completion, 32> done;
        bool executed = true;
        for (unsigned polls = 1; open_ > 0; ++polls) {
            const std::size_t count = completions_.poll(done);
            for (std::size_t each = 0; each < count; ++each)
                executed = executed && !done[each].failed();
            open_ -= count;
            weftio_relax(polls);
        }
        if (!executed)
            connect_again();
        return executed;
    }
    bool is_refused()
    {
        return eventually([&] { return writer_->state() == rdma_state::error; });
    }

 private:
    void connect()
    {
        target_->modify(rdma_state::init, init_attributes());
        target_->connect(writer_->address());
        writer_->connect(target_->address());
    }

    void connect_again()
    {
        target_.reset();
        writer_.reset();
        connect();
    }

    peers& all_;
    completion_queue completions_;
    posted_pair target_, writer_;
    std::size_t open_ = 0; ///< writes that settle() has not seen
};

} // namespace weftio::test
