#include "tcp_script.hpp"

namespace weftio::test {

namespace {

constexpr std::string_view flag_letters = "FSRPA"; // bit 0 is FIN

std::string flags_text(std::uint8_t flags)
{
    std::string text;
    for (char letter : std::string_view("SFRPA"))
        if (flags >> flag_letters.find(letter) & 1)
            text += letter;
    return text;
}

} // namespace

tcp_script::line tcp_script::parse(const std::string& text)
{
    std::istringstream words(text);
    std::string flags, range, name;
    line found;
    words >> flags >> range;
    for (char letter : flags)
        found.flags = static_cast<std::uint8_t>(found.flags | 1 << flag_letters.find(letter));
    const std::size_t colon = range.find(':');
    found.sequence = found.end = static_cast<std::uint32_t>(std::stoll(range));
    if (colon != std::string::npos)
        found.end = static_cast<std::uint32_t>(std::stoll(range.substr(colon + 1)));
    for (std::int64_t value; words >> name >> value;) {
        const auto number = static_cast<std::uint32_t>(value);
        (name == "ack"   ? found.ack
         : name == "win" ? found.win
         : name == "mss" ? found.mss
         : name == "ws"  ? found.ws
                         : found.ts_value) = number;
        if (name == "ts" && words >> value)
            found.ts_echo = static_cast<std::uint32_t>(value);
    }
    return found;
}

void tcp_script::in(const std::string& text)
{
    SCOPED_TRACE(text);
    const line parsed = parse(text);
    tcp_message message{.addresses = addresses, .segment = {}, .payload = {}};
    tcp_segment& segment = message.segment;
    tcp_clear(&segment);
    segment.source_port = peer_port;
    segment.destination_port = own_port;
    segment.flags = parsed.flags;
    segment.sequence = peer_initial + parsed.sequence;
    segment.acknowledgment = parsed.ack ? initial + *parsed.ack : 0;
    segment.window = static_cast<std::uint16_t>(parsed.win.value_or(65535));
    segment.mss = static_cast<std::uint16_t>(parsed.mss.value_or(0));
    segment.window_scale = static_cast<std::uint8_t>(parsed.ws.value_or(TCP_NO_WINDOW_SCALE));
    segment.has_timestamps = parsed.ts_value.has_value();
    segment.ts_value = parsed.ts_value.value_or(0);
    segment.ts_echo = parsed.ts_echo.value_or(0);
    for (std::uint32_t at = parsed.sequence; at != parsed.end; ++at)
        message.payload += peer_content(at);
    server.receive(message, listens);
}

/// Only fields that `like` has.
std::string tcp_script::text_of(const tcp_segment& segment, const line& like) const
{
    const std::uint32_t sequence = segment.sequence - initial;
    std::string text = fmt::format("{} {}", flags_text(segment.flags), static_cast<std::int32_t>(sequence));
    if (segment.payload_bytes)
        text += fmt::format(":{}", sequence + segment.payload_bytes);
    if (like.ack)
        text += fmt::format(" ack {}", static_cast<std::int32_t>(segment.acknowledgment - peer_initial));
    if (like.win)
        text += fmt::format(" win {}", segment.window);
    if (like.mss)
        text += fmt::format(" mss {}", segment.mss);
    if (like.ws)
        text += fmt::format(" ws {}", segment.window_scale);
    if (like.ts_value)
        text += fmt::format(" ts {} {}", like.ts_value == 0u ? 0 : segment.ts_value, segment.ts_echo);
    return text;
}

void tcp_script::out(const std::string& text)
{
    ASSERT_LT(read_, server.sent.size()) << "nothing was sent, not " << text;
    const tcp_message& message = server.sent[read_++];
    if (message.segment.flags & TCP_SYN)
        initial = message.segment.sequence;
    EXPECT_EQ(text_of(message.segment, parse(text)), text);
    EXPECT_EQ(message.segment.source_port, own_port);
    EXPECT_EQ(message.segment.destination_port, peer_port);
    for (std::uint32_t i = 0; i < message.payload.size(); ++i)
        ASSERT_EQ(message.payload[i], tcp_server::content(message.segment.sequence - initial - 1 + i)) << text << i;
}

void tcp_script::nothing()
{
    if (read_ < server.sent.size())
        ADD_FAILURE() << "sent: " << text_of(server.sent[read_].segment, parse("A 0 ack 0 win 0"));
    read_ = server.sent.size();
}

void tcp_script::connect(const std::string& syn)
{
    in(syn);
    const line parsed = parse(syn);
    out("SA 0 ack 1");
    in(parsed.ts_value ? fmt::format("A 1 ack 1 ts {} {}", *parsed.ts_value, server.sent.back().segment.ts_value)
                       : "A 1 ack 1");
    nothing();
    id = server.last;
    ASSERT_EQ(tcp().state, TCP_STATE_ESTABLISHED);
}

} // namespace weftio::test
