// Fakes of the objects that a requester and a responder get from their owner: memory, entries, a wire, a clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "net/roce_headers.hpp"
#include "roce/requester.hpp"
#include "roce/responder.hpp"

namespace roce_ends {

using namespace weftio::roce;
using weftio::access;
using weftio::refusal;
using weftio::net::roce_path;
using bytes = std::vector<std::uint8_t>;

/// One region with all rights for a peer unless a test removes some. Its addresses count from `begin`.
class fake_memory : public remote_memory {
 public:
    static constexpr std::uint32_t key = 0x1234;
    static constexpr std::uint64_t begin = 0x7000'0000'0000;

    /// The memory is aligned to 8 bytes, for atomics.
    explicit fake_memory(std::size_t size) : words_(size / 8 + 1), size_(size) {}

    std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(words_.data()); }
    std::span<std::uint8_t> all() { return {data(), size_}; }

    refusal check(const remote_range& range, access needed) override
    {
        if (range.key != own_key)
            return refusal::unknown_key;
        if ((rights & needed) != needed)
            return needed == access::remote_write ? refusal::no_remote_write : refusal::no_remote_read;
        const std::uint64_t offset = range.address - own_begin;
        return offset <= size_ && range.bytes <= size_ - offset ? refusal::none : refusal::outside_region;
    }
    refusal write(const remote_range& range, std::span<const std::uint8_t> from) override
    {
        const refusal why = check(range, access::remote_write);
        if (why == refusal::none)
            std::memcpy(data() + (range.address - own_begin), from.data(), range.bytes);
        return why;
    }
    refusal read(const remote_range& range, std::span<const std::uint8_t>& found) override
    {
        const refusal why = check(range, access::remote_read);
        if (why == refusal::none)
            found = {data() + (range.address - own_begin), range.bytes};
        return why;
    }
    refusal word(std::uint32_t of, std::uint64_t address, std::uint64_t*& found) override
    {
        const refusal why = check({of, address, 8}, access::remote_atomic);
        if (why == refusal::none)
            found = &words_[(address - own_begin) / 8];
        return why;
    }
    refusal may_invalidate(std::uint32_t of) override { return of == own_key ? refusal::none : refusal::not_a_window; }
    void invalidate(std::uint32_t) override { own_key = 0; }

    access rights = access::remote_write | access::remote_read | access::remote_atomic;
    std::uint32_t own_key = key;
    std::uint64_t own_begin = begin;

 private:
    std::vector<std::uint64_t> words_;
    std::size_t size_;
};

class fake_receives : public receive_entries {
 public:
    void post(std::size_t room) { posted.emplace_back(room); }

    taken take() override
    {
        if (posted.empty())
            return record_broken ? taken::refused : taken::none;
        current = posted.front();
        posted.pop_front();
        used_ = 0;
        return taken::entry;
    }
    refusal deliver(std::uint32_t offset, std::span<const std::uint8_t> from) override
    {
        if (broken)
            return refusal::unknown_key;
        if (offset + from.size() > current.size())
            return refusal::receive_too_short;
        std::copy(from.begin(), from.end(), current.begin() + offset);
        used_ = offset + from.size();
        return refusal::none;
    }
    void complete(const receive_completion& completion) override
    {
        completions.push_back(completion);
        current.resize(used_);
        messages.push_back(current);
    }
    void give_back() override { posted.push_front(current); }
    std::uint8_t credits() const noexcept override { return credit_code; }

    std::deque<bytes> posted;
    bytes current;
    std::vector<receive_completion> completions;
    std::vector<bytes> messages;
    bool broken = false;
    bool record_broken = false; ///< the doorbell record claims more entries than the ring holds
    std::uint8_t credit_code = weftio::net::no_credits;

 private:
    std::size_t used_ = 0;
};

/// Entries of one block. Their local bytes are in two pieces, or fewer.
class fake_sends : public send_entries {
 public:
    struct entry {
        message request;
        bytes local;
    };
    struct ended {
        std::uint32_t index;
        refusal result;
        bool operator==(const ended&) const = default;
    };

    /// @param more  whether more entries follow in the same push
    std::uint32_t post(message request, bytes local, bool more = false)
    {
        request.entry = next_;
        request.bytes = static_cast<std::uint32_t>(local.size());
        request.more = more;
        entries[next_] = {request, std::move(local)};
        return next_++;
    }
    bool read(std::uint32_t index, message& out) override
    {
        const auto found = entries.find(index);
        if (found == entries.end())
            return false;
        ++reads;
        out = found->second.request;
        out.refused = refusals.contains(index) ? refusals.at(index) : refusal::none;
        return true;
    }
    refusal gather(const message& of, std::uint32_t offset, std::uint32_t count, pieces& found) override
    {
        if (of.entry == unreadable)
            return refusal::unknown_key;
        const piece all(entries.at(of.entry).local);
        if (offset + count > all.size())
            return refusal::changed;
        found.add(all.subspan(offset, count / 3));
        found.add(all.subspan(offset + count / 3, count - count / 3));
        return refusal::none;
    }
    refusal scatter(const message& of, std::uint32_t offset, std::span<const std::uint8_t> from) override
    {
        entry& target = entries.at(of.entry);
        if (of.entry == unreadable)
            return refusal::unknown_key;
        if (offset + from.size() > target.local.size())
            return refusal::changed;
        std::copy(from.begin(), from.end(), target.local.begin() + offset);
        return refusal::none;
    }
    refusal execute(const message& of) override
    {
        executed.push_back(of.entry);
        return of.entry == unreadable ? refusal::unknown_key : refusal::none;
    }
    void end(const message& done, refusal result) override { ends.push_back({done.entry, result}); }

    void start_at(std::uint32_t index) { next_ = index; }

    std::map<std::uint32_t, entry> entries;
    std::map<std::uint32_t, refusal> refusals;
    std::vector<ended> ends;
    std::vector<std::uint32_t> executed; ///< local operations
    std::optional<std::uint32_t> unreadable;
    unsigned reads = 0;

 private:
    std::uint32_t next_ = 0;
};

inline roce_path some_path()
{
    roce_path path;
    path.source = weftio::net::gid_of_ipv4(std::array<std::uint8_t, 4>{192, 0, 2, 3});
    path.destination = weftio::net::gid_of_ipv4(std::array<std::uint8_t, 4>{192, 0, 2, 2});
    path.source_port = 0xc121;
    return path;
}

/// Keeps sent frames until the test reads them.
class fake_wire : public packet_sink {
 public:
    bool send(const roce_headers& headers, std::span<const piece> payload) override
    {
        if (frames.size() == room)
            return false;
        bytes whole;
        for (const piece& part : payload)
            whole.insert(whole.end(), part.begin(), part.end());
        bytes frame(weftio::net::most_roce_headers_bytes + whole.size() + 8);
        frame.resize(build_whole_roce(frame, path, headers, whole));
        frames.push_back(std::move(frame));
        ++put;
        return !frames.back().empty();
    }
    bool is_under_way(std::uint64_t& sent) noexcept override
    {
        if (sent == 0)
            sent = put;
        return sent > peer_has_read;
    }
    /// Removes all frames from the wire and parses them.
    std::vector<roce_packet> read()
    {
        kept_.swap(frames);
        frames.clear();
        std::vector<roce_packet> packets(kept_.size());
        for (std::size_t at = 0; at < kept_.size(); ++at)
            if (parse_roce(kept_[at], packets[at]) != weftio::net::roce_refusal::none || !packets[at].icrc_good())
                throw std::runtime_error("what was sent is no packet");
        return packets;
    }

    roce_path path = some_path();
    std::vector<bytes> frames;
    std::size_t room = SIZE_MAX;
    std::uint64_t put = 0;                    ///< frames of this sender, and of others to the same peer
    std::uint64_t peer_has_read = UINT64_MAX; ///< so many of them

 private:
    std::vector<bytes> kept_;
};

/// Bytes that depend on the number of their message.
inline bytes stamped(std::size_t count, std::uint32_t seed)
{
    bytes data(count);
    for (std::size_t at = 0; at < count; ++at)
        data[at] = static_cast<std::uint8_t>((at * 31 + seed * 2654435761u) >> (at % 3 * 7));
    return data;
}

inline message write_to(std::uint64_t offset)
{
    return {.remote_address = fake_memory::begin + offset,
            .remote_key = fake_memory::key,
            .operation = roce_operation::write};
}
inline message read_from(std::uint64_t offset)
{
    message request = write_to(offset);
    request.operation = roce_operation::read_request;
    return request;
}
inline message a_send()
{
    return {.operation = roce_operation::send};
}
inline message fetch_add(std::uint64_t offset, std::uint64_t value)
{
    message request = write_to(offset);
    request.operation = roce_operation::fetch_add;
    request.swap_or_add = value;
    return request;
}
inline message compare_swap(std::uint64_t offset, std::uint64_t compare, std::uint64_t swap)
{
    message request = write_to(offset);
    request.operation = roce_operation::compare_swap;
    request.compare = compare;
    request.swap_or_add = swap;
    return request;
}

} // namespace roce_ends
