// The fakes of unit/roce/fakes.hpp, with checks of each call of a responder and a requester.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "expect.hpp"
#include "guarded.hpp"
#include "unit/roce/fakes.hpp"

namespace weftio::fuzz {

using roce::piece;
using roce_ends::fake_memory;
using roce_ends::fake_receives;
using roce_ends::fake_wire;

/// Memory of 8 KiB. It checks that the responder writes only within a range that it has checked before. Exception: it
/// may write the range `whole` of a message of one packet without an earlier check.
class checked_memory final : public fake_memory {
 public:
    static constexpr std::uint64_t size = 8192;

    checked_memory() : fake_memory(size) {}

    refusal check(const roce::remote_range& range, access needed) override
    {
        expect(range.bytes != 0 && range.bytes <= net::largest_message_bytes, "a range has bytes, and 2 GiB at most");
        const refusal why = fake_memory::check(range, needed);
        if (why == refusal::none && (needed & access::remote_write) != access::none)
            announced_ = range;
        return why;
    }
    refusal write(const roce::remote_range& range, std::span<const std::uint8_t> from) override
    {
        expect(from.size() == range.bytes, "as many bytes are written as are named");
        const bool is_whole =
            range.key == whole.key && range.address == whole.address && range.bytes == whole.bytes && whole.bytes != 0;
        expect(is_whole || (range.address >= announced_.address && range.bytes <= announced_.bytes &&
                            range.address - announced_.address <= announced_.bytes - range.bytes),
               "what is written was announced");
        const roce::remote_range before = announced_;
        const refusal why = fake_memory::write(range, from);
        announced_ = before;
        return why;
    }
    refusal word(std::uint32_t of, std::uint64_t address, std::uint64_t*& found) override
    {
        expect(address % 8 == 0, "atomics are aligned");
        return fake_memory::word(of, address, found);
    }
    /// The key stays, so that requests after an invalidation reach the memory too.
    void invalidate(std::uint32_t of) override { expect(of == own_key, "the key may be invalidated"); }

    roce::remote_range whole; ///< range of the current packet, if the packet is a whole message

 private:
    roce::remote_range announced_;
};

class checked_receives final : public fake_receives {
 public:
    roce::taken take() override
    {
        expect(!has_current_, "one entry is current at most");
        const roce::taken what = fake_receives::take();
        has_current_ = what == roce::taken::entry;
        next_ = 0;
        return what;
    }
    refusal deliver(std::uint32_t offset, std::span<const std::uint8_t> from) override
    {
        expect(has_current_, "bytes go to the current entry");
        expect(offset == next_, "each packet goes behind the one before");
        const refusal why = fake_receives::deliver(offset, from);
        if (why == refusal::none)
            next_ += static_cast<std::uint32_t>(from.size());
        return why;
    }
    void complete(const roce::receive_completion& completion) override
    {
        expect(std::exchange(has_current_, false), "the current entry completes, once");
        expect(completion.result != refusal::none || completion.by == roce::filled_by::write_immediate ||
                   completion.bytes == next_,
               "a completion tells the length of its message");
        fake_receives::complete(completion);
    }
    void give_back() override
    {
        expect(std::exchange(has_current_, false), "the current entry is given back, once");
        fake_receives::give_back();
    }
    bool has_current() const { return has_current_; }

 private:
    bool has_current_ = false;
    std::uint32_t next_ = 0;
};

/// Entries of up to 4 GiB. They have no bytes of their own, which fake_sends have: what is sent ends at a guard page,
/// and what is read is dropped.
class checked_sends final : public roce::send_entries {
 public:
    bool read(std::uint32_t index, roce::message& out) override
    {
        expect(index == next_, "entries are read in their order, each once");
        if (index >= posted.size())
            return false;
        ++next_;
        out = posted[index];
        out.entry = index;
        out.more = index + 1 < posted.size();
        out.refused = refusals.contains(index) ? refusals[index] : refusal::none;
        return true;
    }
    refusal gather(const roce::message& of, std::uint32_t offset, std::uint32_t bytes, roce::pieces& found) override
    {
        static guarded memory(guarded::page);
        expect(bytes != 0 && bytes <= net::largest_path_mtu, "a packet has some bytes");
        within(of, offset, bytes);
        if (gone)
            return refusal::unknown_key;
        found.add({reinterpret_cast<const std::uint8_t*>(memory.nic()) + guarded::page - bytes, bytes});
        return refusal::none;
    }
    refusal scatter(const roce::message& of, std::uint32_t offset, std::span<const std::uint8_t> from) override
    {
        within(of, offset, static_cast<std::uint32_t>(from.size()));
        expect(of.entry == ended_, "the oldest entry is answered");
        for (std::uint8_t byte : from)
            sum_ += byte; // read all
        return gone ? refusal::unknown_key : refusal::none;
    }
    refusal execute(const roce::message& of) override
    {
        expect(of.is_local() && of.entry >= executed_ && of.entry < next_, "local operations are executed once");
        executed_ = of.entry + 1;
        return gone ? refusal::unknown_key : refusal::none;
    }
    void end(const roce::message& done, refusal result) override
    {
        expect(done.entry == ended_++, "entries end in their order, each once");
        expect(!done.is_local() || result != refusal::none || done.executed, "what ends well was executed");
    }
    std::uint32_t ended() const { return ended_; }

    std::vector<roce::message> posted;
    std::map<std::uint32_t, refusal> refusals;
    bool gone = false;

 private:
    void within(const roce::message& of, std::uint32_t offset, std::uint32_t bytes) const
    {
        expect(of.entry < next_ && of.entry >= ended_, "an entry is in flight");
        expect(offset <= of.bytes && bytes <= of.bytes - offset, "bytes lie within the message");
    }

    std::uint32_t next_ = 0, executed_ = 0, ended_ = 0;
    unsigned sum_ = 0;
};

/// Checks that each packet can be built and fits into the path MTU.
class checked_wire final : public fake_wire {
 public:
    explicit checked_wire(std::uint32_t path_mtu) : path_mtu_(path_mtu) {}

    bool send(const roce::roce_headers& headers, std::span<const piece> payload) override
    {
        std::size_t bytes = 0;
        for (const piece& part : payload)
            bytes += part.size();
        expect(payload_fits(net::shape_of(headers.bth.opcode), bytes, path_mtu_), "a packet fits");
        if (frames.size() >= room)
            return false;
        expect(fake_wire::send(headers, payload), "what is sent is a packet");
        return true;
    }

 private:
    std::uint32_t path_mtu_;
};

} // namespace weftio::fuzz
