// Two ends whose payload lies in memory that the CPU cannot access.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "two_ends.hpp"
#include "unit/device/hidden_gpu.hpp"

namespace weftio::test {

class staged_ends {
 public:
    static constexpr std::size_t room = 16 << 20;

    explicit staged_ends(bool one_port) : ends(one_port)
    {
        ends.connect();
        for (unsigned end = 0; end < 2; ++end)
            for (std::size_t at = 0; at < room; ++at)
                there(end).data()[at] = static_cast<std::uint8_t>(at * 7 + at / 251 + end);
    }
    hidden_memory& there(unsigned end) { return end == 0 ? ours : theirs; }
    segment local(unsigned end, std::size_t at, std::size_t count)
    {
        return pointer(static_cast<std::uint32_t>(count), there(end).lkey(), there(end).address(at));
    }
    segment remote_at(unsigned end, std::size_t at) { return remote(there(end).address(at), there(end).lkey()); }
    void post(std::uint32_t opcode, const std::vector<segment>& body, std::uint32_t immediate = 0)
    {
        a.post(opcode, body, immediate);
        a.push();
    }
    /// Runs the engines, whatever waits.
    void turns(unsigned count = 200)
    {
        for (unsigned each = 0; each < count; ++each)
            for (unsigned end = 0; end < 2; ++end)
                ends.at(end).turn();
    }
    std::uint64_t done() { return a.nic().counters().done; }
    void expect_conserved_at_both()
    {
        for (unsigned end = 0; end < 2; ++end)
            expect_conserved(ends.queue(end).nic().counters());
    }
    static bool equal(const std::uint8_t* one, const std::uint8_t* other, std::size_t count)
    {
        return std::memcmp(one, other, count) == 0;
    }

    two_ends ends;
    fake_pair &a = ends.queue(0), &b = ends.queue(1);
    end_memory &host = ends.memory(0), &peer_host = ends.memory(1);
    hidden_memory ours{ends.at(0), room, all_rights}, theirs{ends.at(1), room, all_rights};
};

/// More queue pairs between the two ends.
class crowd {
 public:
    crowd(two_ends& ends, std::size_t count)
    {
        for (std::size_t each = 0; each != count; ++each) {
            std::array<std::unique_ptr<fake_pair>, 2> made;
            for (unsigned end = 0; end < 2; ++end)
                made[end] = std::make_unique<fake_pair>(ends.at(end));
            ends.queues.swap(made);
            ends.connect();
            ends.queues.swap(made);
            pairs_.push_back(std::move(made));
        }
    }
    fake_pair& of(unsigned end, std::size_t number) { return *pairs_[number][end]; }
    void expect_conserved_at_all()
    {
        for (const auto& each : pairs_)
            for (unsigned end = 0; end < 2; ++end)
                expect_conserved(each[end]->nic().counters());
    }

 private:
    std::vector<std::array<std::unique_ptr<fake_pair>, 2>> pairs_;
};

} // namespace weftio::test
