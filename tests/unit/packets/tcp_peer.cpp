#include "tcp_peer.hpp"

#include <algorithm>

namespace weftio::test {

namespace {

constexpr std::uint64_t timeout_ns = 300'000'000;

} // namespace

std::uint64_t tcp_peer::window() const
{
    std::uint64_t kept = 0;
    for (const auto& each : early_)
        kept += each.second.size();
    return options_.buffer > kept ? options_.buffer : 0; // a buffer that is full of early bytes closes the window
}

tcp_message tcp_peer::make(std::uint8_t flags, std::uint64_t position, std::uint32_t count)
{
    tcp_message message{.addresses = {{0, 0, 0xffff, 1}, {0, 0, 0xffff, 2}}, .segment = {}, .payload = {}};
    tcp_segment& segment = message.segment;
    tcp_clear(&segment);
    segment.source_port = options_.port;
    segment.destination_port = 80;
    segment.flags = flags;
    segment.sequence = options_.initial + (flags & TCP_SYN ? 0 : 1) + static_cast<std::uint32_t>(position);
    if (flags & TCP_ACK)
        segment.acknowledgment = server_initial_ + 1 + static_cast<std::uint32_t>(received_) + server_fin_taken_;
    const unsigned shift = scales_ && !(flags & TCP_SYN) ? options_.scale.value_or(0) : 0;
    segment.window = static_cast<std::uint16_t>(std::min<std::uint64_t>(window() >> shift, 65535));
    if (flags & TCP_SYN) {
        segment.mss = options_.mss;
        segment.window_scale = options_.scale.value_or(TCP_NO_WINDOW_SCALE);
    }
    if (timestamps_ || ((flags & TCP_SYN) && options_.timestamps)) {
        segment.has_timestamps = 1;
        segment.ts_value = static_cast<std::uint32_t>(now_ns_ / 1'000'000) - 1000; // wraps in the test
        segment.ts_echo = recent_;
    }
    for (std::uint32_t i = 0; i < count; ++i)
        message.payload += content(position + i);
    return message;
}

bool tcp_peer::wants_to_close() const
{
    return options_.closes_first ? next_ == options_.sends : server_fin_taken_;
}

void tcp_peer::send_stream(std::vector<tcp_message>& out)
{
    while (next_ < std::min(options_.sends, allowed_)) {
        const auto most = std::min<std::uint64_t>({options_.sends - next_, allowed_ - next_, 700});
        const auto count = static_cast<std::uint32_t>(1 + random_() % most);
        out.push_back(make(TCP_ACK | TCP_PSH, next_, count));
        next_ += count;
    }
    if (next_ == options_.sends && wants_to_close() && !fin_sent_) {
        out.push_back(make(TCP_ACK | TCP_FIN, next_, 0));
        fin_sent_ = true;
    }
}

std::vector<tcp_message> tcp_peer::poll(std::uint64_t now_ns)
{
    std::vector<tcp_message> out;
    const bool late = now_ns - last_sent_ns_ >= timeout_ns;
    now_ns_ = now_ns;
    if (phase_ != phase::open) {
        if (phase_ == phase::closed || late)
            out.push_back(make(TCP_SYN, 0, 0));
        phase_ = phase::syn_sent;
    } else {
        if (late && (acknowledged_ < next_ || (fin_sent_ && !fin_acknowledged_))) {
            next_ = acknowledged_;
            fin_sent_ = false;
        }
        send_stream(out);
        if (out.empty() && acknowledge_ && now_ns >= delay_ns_)
            out.push_back(make(TCP_ACK, next_ + fin_sent_, 0));
        if (!out.empty())
            acknowledge_ = false;
    }
    if (!out.empty())
        last_sent_ns_ = now_ns;
    return out;
}

void tcp_peer::take_ack(const tcp_segment& segment)
{
    const std::uint32_t step =
        segment.acknowledgment - options_.initial - 1 - static_cast<std::uint32_t>(acknowledged_);
    if (step > options_.sends - acknowledged_ + 1)
        return; // an old one
    fin_acknowledged_ |= step == options_.sends - acknowledged_ + 1;
    acknowledged_ += step - fin_acknowledged_;
    if (fin_acknowledged_)
        acknowledged_ = options_.sends;
    next_ = std::max(next_, acknowledged_);
    allowed_ = std::max(allowed_, acknowledged_ + segment.window);
}

void tcp_peer::take_payload(const tcp_message& message)
{
    const std::uint32_t ahead = message.segment.sequence - server_initial_ - 1 - static_cast<std::uint32_t>(received_);
    const auto at = static_cast<std::uint64_t>(static_cast<std::int64_t>(received_) + static_cast<std::int32_t>(ahead));
    if (message.segment.flags & TCP_FIN)
        server_end_ = at + message.payload.size();
    std::string& kept = early_[at];
    if (kept.size() < message.payload.size())
        kept = message.payload;
    while (!early_.empty() && early_.begin()->first <= received_) {
        const auto& [from, bytes] = *early_.begin();
        for (std::uint64_t i = received_ - from; i < bytes.size(); ++i, ++received_)
            wrong_ += bytes[i] != tcp_server::content(received_);
        early_.erase(early_.begin());
    }
    server_fin_taken_ |= server_end_ == received_;
}

void tcp_peer::receive(const tcp_message& message)
{
    const tcp_segment& segment = message.segment;
    if (segment.flags & TCP_RST) {
        reset_ = true;
        return;
    }
    if (segment.flags & TCP_SYN) {
        if (phase_ == phase::syn_sent) {
            phase_ = phase::open;
            server_initial_ = segment.sequence;
            timestamps_ = segment.has_timestamps && options_.timestamps;
            scales_ = segment.window_scale != TCP_NO_WINDOW_SCALE;
            allowed_ = segment.window;
        }
        acknowledge_ = true;
    }
    if (phase_ != phase::open)
        return;
    if (segment.has_timestamps)
        recent_ = segment.ts_value;
    take_ack(segment);
    if (!message.payload.empty() || (segment.flags & TCP_FIN)) {
        const std::uint64_t before = received_;
        take_payload(message);
        // In order: later or with the next segment. A gap: at once, as a duplicate.
        delay_ns_ = received_ == before || acknowledge_ ? 0 : now_ns_ + random_() % 3 * 10'000'000;
        acknowledge_ = true;
    } else if (segment.sequence != server_initial_ + 1 + static_cast<std::uint32_t>(received_)) {
        acknowledge_ = true; // a probe
    }
}

void tcp_link::send(const tcp_message& message, std::uint64_t now_ns)
{
    if (happens(options_.loss))
        return;
    for (int copies = happens(options_.doubles) ? 2 : 1; copies > 0; --copies) {
        const std::uint64_t late = happens(options_.late) ? random_() % 30'000'000 : 0;
        under_way_.emplace(now_ns + options_.delay_ns + late, message);
    }
}

std::vector<tcp_message> tcp_link::arrived(std::uint64_t now_ns)
{
    std::vector<tcp_message> messages;
    const auto end = under_way_.upper_bound(now_ns);
    for (auto at = under_way_.begin(); at != end; ++at)
        messages.push_back(std::move(at->second));
    under_way_.erase(under_way_.begin(), end);
    return messages;
}

} // namespace weftio::test
