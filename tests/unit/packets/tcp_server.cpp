#include "tcp_server.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace weftio::test {

tcp_server::tcp_server(std::shared_ptr<tcp_world> world, std::uint32_t buckets)
    : world_(std::move(world)), buckets_(buckets), lists_(TCP_LISTS)
{
    endpoint.records = reinterpret_cast<weftio_u8*>(world_->records.data());
    endpoint.record_bytes = sizeof(tcp_world::record);
    endpoint.pool = &world_->pool;
    endpoint.settings = &world_->settings;
    endpoint.buckets = buckets_.data();
    endpoint.bucket_mask = buckets - 1;
    endpoint.lists = lists_.data();
}

void tcp_server::receive(const tcp_message& message, bool listens)
{
    std::vector<std::uint8_t> bytes(TCP_HEADER_MOST_BYTES);
    bytes.resize(tcp_write(bytes.data(), &message.segment));
    bytes.insert(bytes.end(), message.payload.begin(), message.payload.end());
    EXPECT_EQ(receive_bytes(message.addresses, bytes, listens), std::uint32_t{TCP_PARSED});
}

std::uint32_t tcp_server::receive_bytes(const tcp_addresses& addresses, const std::vector<std::uint8_t>& bytes,
                                        bool listens)
{
    tcp_segment segment;
    tcp_result result;
    if (const std::uint32_t reason = tcp_parse(bytes.data(), static_cast<weftio_u32>(bytes.size()), &segment))
        return reason;
    tcp_receive(&endpoint, &addresses, &segment, now_ns, listens, &result);
    if (result.has_answer)
        send(addresses, result.answer, 0);
    if (result.connection != TCP_NONE)
        serve(result, reinterpret_cast<const char*>(bytes.data()) + segment.header_bytes);
    return TCP_PARSED;
}

void tcp_server::run(std::uint32_t most)
{
    tcp_result result;
    for (; most > 0 && room > 0 && tcp_due(&endpoint, now_ns, &result); --most)
        serve(result, nullptr);
}

void tcp_server::pass(std::uint64_t milliseconds)
{
    // Not in one step: what is due earlier is sent earlier.
    for (const std::uint64_t end = now_ns + milliseconds * 1'000'000; now_ns < end;) {
        now_ns = std::min(end, now_ns + 1'000'000);
        run();
    }
}

void tcp_server::take(tcp_result& result, const char* payload)
{
    const std::uint32_t count = std::min(result.payload_bytes, window);
    if (window != ~0u)
        window -= count;
    sessions_[result.connection].received.append(payload + result.payload_offset, count);
    tcp_take(&endpoint, &connection(result.connection), count, window, now(), &result);
}

void tcp_server::serve(tcp_result& result, const char* payload)
{
    last = result.connection;
    tcp_connection& tcp = connection(last);
    if (result.events & TCP_EVENT_ESTABLISHED)
        sessions_[last] = {};
    if (result.payload_bytes)
        take(result, payload);
    if (result.events & TCP_EVENT_ACKNOWLEDGED)
        sessions_[last].acknowledged = tcp_acknowledged(&tcp);
    sessions_[last].events |= result.events;
    if (application)
        application(*this, last, result.events);
    drain(last);
}

void tcp_server::drain(std::uint32_t number)
{
    tcp_connection& tcp = connection(number);
    tcp_segment segment;
    weftio_u32 offset;
    bool empty = false;
    while (room > 0 && !(empty = !tcp_output(&endpoint, &tcp, now(), &segment, &offset))) {
        // Positions have 32 bits, streams may be longer: the upper ones are those of what was queued.
        const std::uint64_t queued = sessions_[number].queued;
        send(tcp.addresses, segment, queued - static_cast<std::uint32_t>(queued - offset));
        room -= room != ~0u;
    }
    tcp_done(&endpoint, number, !empty, now());
}

void tcp_server::send(const tcp_addresses& addresses, const tcp_segment& segment, std::uint64_t position)
{
    std::vector<std::uint8_t> bytes(TCP_HEADER_MOST_BYTES);
    tcp_message message{.addresses = addresses, .segment = {}, .payload = {}};
    const std::uint32_t header_bytes = tcp_write(bytes.data(), &segment);
    EXPECT_LE(header_bytes + segment.payload_bytes + 20, world_->settings.mtu);
    EXPECT_EQ(tcp_parse(bytes.data(), header_bytes, &message.segment), std::uint32_t{TCP_PARSED});
    for (std::uint32_t i = 0; i < segment.payload_bytes; ++i)
        message.payload += content(position + i);
    message.segment.payload_bytes = segment.payload_bytes;
    sent.push_back(std::move(message));
}

void tcp_server::queue(std::uint32_t number, std::uint32_t bytes)
{
    sessions_[number].queued += bytes;
    tcp_queue(&connection(number), bytes, now());
    drain(number);
}
void tcp_server::close(std::uint32_t number)
{
    tcp_close(&connection(number), now());
    drain(number);
}
void tcp_server::abort(std::uint32_t number)
{
    tcp_abort(&endpoint, &connection(number));
    drain(number);
}
void tcp_server::open_window(std::uint32_t number, std::uint32_t bytes)
{
    window = bytes;
    tcp_window(&endpoint, &connection(number), bytes);
    drain(number);
}

std::string tcp_server::inconsistency() const
{
    std::uint32_t in_buckets = 0, in_lists = 0, half_open = 0;
    for (weftio_u32 first : buckets_)
        for (weftio_u32 at = first; at != TCP_NONE; at = world_->records[at - 1].tcp.next_in_bucket) {
            ++in_buckets;
            half_open += (world_->records[at - 1].tcp.flags & TCP_HALF_OPEN) != 0;
        }
    for (weftio_u32 list = 0; list < TCP_LISTS; ++list)
        for (weftio_u32 at = lists_[list]; at != TCP_NONE;) {
            const tcp_connection& each = world_->records[at - 1].tcp;
            ++in_lists;
            if (each.list != list + 1 || world_->records[each.next - 1].tcp.previous != at)
                return fmt::format("connection {} is wrongly linked in list {}", at, list);
            at = each.next == lists_[list] ? std::uint32_t{TCP_NONE} : each.next;
        }
    if (in_buckets == endpoint.connections && in_lists == in_buckets && half_open == endpoint.half_open)
        return {};
    return fmt::format("{} connections ({} half open): {} in buckets ({}), {} in lists", endpoint.connections,
                       endpoint.half_open, in_buckets, half_open, in_lists);
}

} // namespace weftio::test
