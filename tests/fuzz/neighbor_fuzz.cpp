// Any bytes as a received question for a MAC, or as an answer to one.
//
// The frame lies against a guard page. Where the input asks for it, ICMPv6 has its checksum by DPDK first. What a
// message says is built again, and answered, and read again.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include <rte_ip.h>

#include "expect.hpp"
#include "frame_memory.hpp"
#include "net/neighbor_messages.hpp"

namespace weftio::fuzz {

namespace {

using namespace net;
using bytes = std::span<const std::uint8_t>;

constexpr std::uint8_t icmpv6 = 58;
constexpr std::size_t ipv6_bytes = 40, checksum_at = 2;

/// @return whether the frame has room for a checksum
bool fill_icmpv6_sum(std::span<std::uint8_t> frame, const packet_headers& headers)
{
    const std::size_t begin = headers.l3_offset + ipv6_bytes;
    if (headers.l3 != l3_kind::ipv6 || headers.l4_offset != begin || headers.protocol != icmpv6 ||
        headers.l3_end > frame.size() || headers.l3_end < begin + checksum_at + 2)
        return false;
    rte_ipv6_hdr ip;
    std::memcpy(&ip, &frame[headers.l3_offset], sizeof ip);
    std::memset(&frame[begin + checksum_at], 0, 2);
    const std::uint16_t sum = rte_ipv6_udptcp_cksum(&ip, &frame[begin]);
    std::memcpy(&frame[begin + checksum_at], &sum, 2);
    return true;
}

bool read(bytes frame, neighbor_message& message)
{
    return parse_neighbor(frame, parse(frame, std::nullopt), message);
}

void check(const neighbor_message& message)
{
    expect((message.mac[0] & 1) == 0 && message.mac != mac_address{}, "a MAC is that of one host");
    expect(message.target != roce_gid{} && message.target[0] != 0xff, "a target is that of one host");
    expect(message.source[0] != 0xff, "one host asks");
    expect(message.asks || message.source == message.target, "who answers is the target");
}

/// The answer to a question says what it is to say, to who has asked.
void check_answered(const neighbor_message& question)
{
    std::array<std::uint8_t, most_neighbor_bytes> to;
    const neighbor_frame own{.source_mac = {2, 0, 0, 0, 0, 7}, .tags = {{{.tci = 5}}}, .tag_count = 1};
    const bytes answer = std::span(to).first(build_answer(to, own, question));
    neighbor_message answered;
    expect(read(answer, answered) && !answered.asks, "an answer can be read");
    expect(answered.mac == own.source_mac && answered.target == question.target, "an answer tells our MAC");
    expect(answered.addressee == question.source, "an answer is for who has asked");
}

void check_asked(const neighbor_message& message)
{
    std::array<std::uint8_t, most_neighbor_bytes> to;
    const neighbor_frame own{.source_mac = message.mac};
    const bytes question = std::span(to).first(build_question(to, own, message.source, message.target));
    neighbor_message again;
    expect(read(question, again) && again.asks, "a question can be read");
    expect(again.mac == message.mac && again.source == message.source && again.target == message.target,
           "a question is as it was built");
}

void look_at(bytes frame, bool summed)
{
    static frame_memory behind, before;
    static std::vector<std::uint8_t> copy;
    copy.assign(frame.begin(), frame.end());
    if (summed)
        fill_icmpv6_sum(copy, parse(copy, std::nullopt));
    neighbor_message message, other;
    const bool good = read(behind.against_the_end(copy), message);
    expect(read(before.against_the_begin(copy), other) == good, "a frame is read the same wherever it lies");
    if (!good)
        return;
    check(message);
    if (!message.asks)
        return;
    check_answered(message);
    check_asked(message);
}

} // namespace

} // namespace weftio::fuzz

/// The frame, and behind it one byte: whether it has a right checksum.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t count)
{
    if (count != 0)
        weftio::fuzz::look_at({data, count - 1}, (data[count - 1] & 1) != 0);
    return 0;
}
