// The interfaces that a responder and a requester get from their owner, with checks of each call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "expect.hpp"
#include "guarded.hpp"
#include "roce/requester.hpp"
#include "roce/responder.hpp"

namespace weftio::fuzz {

using roce::piece;

/// A region of 8 KiB between guard pages. It checks that the responder writes only within a range that it has checked
/// before. Exception: it may write the range `whole` of a message of one packet without an earlier check.
class checked_memory final : public roce::remote_memory {
 public:
    static constexpr std::uint32_t key = 0x100;
    static constexpr std::uint64_t begin = 0x10000, size = 2 * guarded::page;

    refusal check(const roce::remote_range& range, access needed) override
    {
        expect(range.bytes != 0 && range.bytes <= net::largest_message_bytes, "a range has bytes, and 2 GiB at most");
        if (range.key != own_key)
            return refusal::unknown_key;
        const std::uint64_t offset = range.address - begin;
        if (offset > size || range.bytes > size - offset)
            return refusal::outside_region;
        if ((needed & access::remote_write) != access::none)
            announced_ = range;
        return refusal::none;
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
        const refusal why = check(range, access::remote_write);
        announced_ = before;
        if (why == refusal::none)
            std::copy(from.begin(), from.end(), at(range.address));
        return why;
    }
    refusal read(const roce::remote_range& range, std::span<const std::uint8_t>& found) override
    {
        const refusal why = check(range, access::remote_read);
        if (why == refusal::none)
            found = {at(range.address), range.bytes};
        return why;
    }
    refusal word(std::uint32_t of, std::uint64_t address, std::uint64_t*& found) override
    {
        expect(address % 8 == 0, "atomics are aligned");
        const refusal why = check({of, address, 8}, access::remote_atomic);
        if (why == refusal::none)
            found = reinterpret_cast<std::uint64_t*>(at(address));
        return why;
    }
    refusal invalidate(std::uint32_t of) override { return of == own_key ? refusal::none : refusal::unknown_key; }

    std::uint32_t own_key = key;
    roce::remote_range whole; ///< range of the current packet, if the packet is a whole message

 private:
    std::uint8_t* at(std::uint64_t address)
    {
        static guarded memory(size);
        return reinterpret_cast<std::uint8_t*>(memory.kernel()) + (address - begin);
    }

    roce::remote_range announced_;
};

class checked_receives final : public roce::receive_entries {
 public:
    roce::taken take() override
    {
        expect(!current_, "one entry is current at most");
        current_ = posted != 0;
        posted -= current_;
        next_ = 0;
        return current_ ? roce::taken::entry : roce::taken::none;
    }
    refusal deliver(std::uint32_t offset, std::span<const std::uint8_t> from) override
    {
        expect(current_, "bytes go to the current entry");
        expect(offset == next_, "each packet goes behind the one before");
        if (offset + from.size() > room)
            return room % 2 == 0 ? refusal::receive_too_short : refusal::unknown_key;
        next_ += static_cast<std::uint32_t>(from.size());
        for (std::uint8_t byte : from)
            sum_ += byte; // read all
        return refusal::none;
    }
    void complete(const roce::receive_completion& completion) override
    {
        expect(std::exchange(current_, false), "the current entry completes, once");
        expect(completion.result != refusal::none || completion.by == roce::filled_by::write_immediate ||
                   completion.bytes == next_,
               "a completion tells the length of its message");
    }
    void give_back() override
    {
        expect(std::exchange(current_, false), "the current entry is given back, once");
        ++posted;
    }
    bool has_current() const { return current_; }

    unsigned posted = 0;
    std::uint32_t room = 700;

 private:
    bool current_ = false;
    std::uint32_t next_ = 0;
    unsigned sum_ = 0;
};

/// Entries whose local bytes end at a guard page.
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

/// Accepts `room` packets. Checks that each can be built and fits into the path MTU.
class checked_wire final : public roce::packet_sink {
 public:
    explicit checked_wire(std::uint32_t path_mtu) : path_mtu_(path_mtu) {}

    bool send(const roce::roce_headers& headers, std::span<const piece> payload) override
    {
        if (room == 0)
            return false;
        --room;
        std::vector<std::uint8_t> whole;
        for (const piece& part : payload)
            whole.insert(whole.end(), part.begin(), part.end());
        expect(payload_fits(net::shape_of(headers.bth.opcode), whole.size(), path_mtu_), "a packet fits");
        std::vector<std::uint8_t> frame(net::most_roce_headers_bytes + whole.size() + 8);
        frame.resize(net::build_whole_roce(frame, {}, headers, whole));
        expect(!frame.empty(), "what is sent is a packet");
        frames.push_back(std::move(frame));
        return true;
    }

    std::vector<std::vector<std::uint8_t>> frames;
    unsigned room = 1000;

 private:
    std::uint32_t path_mtu_;
};

} // namespace weftio::fuzz
