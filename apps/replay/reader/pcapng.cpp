// pcapng: draft-ietf-opsawg-pcapng. Section names in the comments are those of the draft.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "reader/capture.hpp"
#include "reader/fields.hpp"
#include "reader/ticks.hpp"

namespace weftio::replay {

namespace {

constexpr std::uint32_t section_header = 0x0a0d0d0a, interface_description = 1, obsolete_packet = 2, simple_packet = 3,
                        enhanced_packet = 6;
constexpr std::uint32_t magic = 0x1a2b3c4d;
constexpr std::uint32_t head_bytes = 8, trailer_bytes = 4, packet_bytes = 20;
constexpr std::uint32_t longest_block = 16 * 1024 * 1024; ///< limit of libpcap and Wireshark
constexpr std::size_t most_interfaces = 1u << 20;
constexpr std::uint16_t option_end = 0, option_flags = 2, option_tsresol = 9, option_fcslen = 13, option_tsoffset = 14;

struct interface_of_section {
    std::uint32_t link_type, snaplen;
    ticks clock;
    std::uint32_t fcs_bytes = 0;
};

std::size_t padded(std::size_t bytes)
{
    return (bytes + 3) / 4 * 4;
}

/// "Options": code, length, value padded to 4 bytes.
struct option {
    std::uint16_t code = option_end, bytes = 0;
    std::size_t value = 0; ///< offset of the value in the block
    bool overruns = false; ///< the value ends behind the block's options

    std::size_t next() const { return value + padded(bytes); }
};

/// Reads the option at offset `at` of a block whose options end at `end`; option_end if there is none.
option option_at(const fields& body, std::size_t at, std::size_t end)
{
    if (at + 4 > end)
        return {};
    option found{.code = body.u16(at), .bytes = body.u16(at + 2), .value = at + 4};
    found.overruns = found.next() > end;
    return found;
}

class pcapng_reader final : public capture_reader {
 public:
    explicit pcapng_reader(input from) : capture_reader(std::move(from)) {}

    bool next(frame& to) override;
    bool rewind() override;
    const char* format() const noexcept override { return "pcapng"; }

 private:
    enum class block { packet, other, none };

    block read_block(frame& to);
    bool start_section();
    bool read_length(std::uint32_t type);
    bool check_trailer(std::uint32_t trailer);
    block skip_block();
    bool read_section(const fields& body);
    bool read_interface(const fields& body);
    bool read_options(const fields& body, std::size_t at, interface_of_section& of);
    bool check_option(std::size_t at, const option& found);
    std::uint32_t fcs_of_packet(const fields& body, std::size_t at) const;
    bool read_packet(std::uint32_t type, std::span<const std::byte> bytes, frame& to);
    bool read_simple_packet(std::span<const std::byte> bytes, frame& to);
    bool fill(frame& to, std::span<const std::byte> bytes, std::size_t at, std::uint32_t captured);

    bool swapped_ = false, in_section_ = false;
    std::uint64_t start_ = 0;   ///< offset of the block
    std::uint32_t length_ = 0;  ///< length of the block
    std::uint32_t pending_ = 0; ///< bytes of the block returned last
    std::vector<interface_of_section> interfaces_;
};

bool pcapng_reader::rewind()
{
    if (!in_.rewind())
        return false;
    damage_.reset();
    in_section_ = false;
    pending_ = 0;
    interfaces_.clear();
    return true;
}

bool pcapng_reader::next(frame& to)
{
    while (!damage_) {
        in_.skip(std::exchange(pending_, 0));
        block kind = read_block(to);
        if (kind != block::other)
            return kind == block::packet;
    }
    return false;
}

/// Reads the current block. A packet's bytes stay in the window until the next call, which consumes them.
pcapng_reader::block pcapng_reader::read_block(frame& to)
{
    start_ = in_.offset();
    auto head = in_.peek(head_bytes);
    if (head.empty() && in_.failure().empty())
        return block::none;
    if (head.size() < head_bytes) {
        fail_truncated(start_, "a block header", head_bytes, head.size());
        return block::none;
    }
    bool section = fields(head, false).u32(0) == section_header; // the same in both byte orders
    if (section && !start_section())
        return block::none;
    std::uint32_t type = fields(in_.peek(head_bytes), swapped_).u32(0);
    if (!read_length(type))
        return block::none;
    bool known = section || (type >= interface_description && type <= simple_packet) || type == enhanced_packet;
    if (!known)
        return skip_block();
    auto bytes = in_.peek(length_);
    if (bytes.size() < length_) {
        fail_truncated(start_, "a block", length_, bytes.size());
        return block::none;
    }
    fields body(bytes, swapped_);
    if (!check_trailer(body.u32(length_ - trailer_bytes)))
        return block::none;
    pending_ = length_;
    if (section)
        return read_section(body) ? block::other : block::none;
    if (type == interface_description)
        return read_interface(body) ? block::other : block::none;
    return read_packet(type, bytes, to) ? block::packet : block::none;
}

/// "Section Header Block": its magic gives the byte order of all that follows.
bool pcapng_reader::start_section()
{
    auto head = in_.peek(12);
    if (head.size() < 12)
        return fail_truncated(start_, "a section header", 12, head.size());
    for (bool swapped : {false, true})
        if (fields(head, swapped).u32(8) == magic) {
            swapped_ = swapped;
            in_section_ = true;
            return true;
        }
    return fail(start_ + 8,
                fmt::format("a section header with the unknown byte-order magic {:08x}", fields(head, false).u32(8)));
}

/// "General Block Structure": the length at both ends is the same multiple of 4.
bool pcapng_reader::read_length(std::uint32_t type)
{
    if (!in_section_)
        return fail(start_, "a block before the first section header");
    length_ = fields(in_.peek(head_bytes), swapped_).u32(4);
    std::uint32_t shortest = head_bytes + trailer_bytes;
    if (type == section_header)
        shortest += 16;
    else if (type == interface_description)
        shortest += 8;
    else if (type == simple_packet)
        shortest += 4;
    else if (type == enhanced_packet || type == obsolete_packet)
        shortest += packet_bytes;
    if (length_ < shortest)
        return fail(start_ + 4,
                    fmt::format("a block of type {} with length {}; the minimum is {}", type, length_, shortest));
    if (length_ > longest_block)
        return fail(start_ + 4, fmt::format("a block with length {}; the limit is {}", length_, longest_block));
    if (length_ % 4 != 0)
        return fail(start_ + 4, fmt::format("a block with length {}, not a multiple of 4", length_));
    return true;
}

bool pcapng_reader::check_trailer(std::uint32_t trailer)
{
    return trailer == length_ ||
           fail(start_ + length_ - trailer_bytes,
                fmt::format("a block that starts with length {} and ends with length {}", length_, trailer));
}

pcapng_reader::block pcapng_reader::skip_block()
{
    std::uint64_t skipped = in_.skip(length_ - trailer_bytes);
    auto trailer = in_.peek(trailer_bytes);
    if (trailer.size() < trailer_bytes)
        fail_truncated(start_, "a block", length_, skipped + trailer.size());
    else if (check_trailer(fields(trailer, swapped_).u32(0)))
        in_.skip(trailer_bytes);
    return damage_ ? block::none : block::other;
}

/// Reads a section header. Ignores the section length; interface numbers start again at 0.
bool pcapng_reader::read_section(const fields& body)
{
    std::uint16_t major = body.u16(12), minor = body.u16(14);
    if (major != 1 || (minor != 0 && minor != 2))
        return fail(start_ + 12, fmt::format("a section of version {}.{}; 1.0 is supported", major, minor));
    interfaces_.clear();
    return true;
}

bool pcapng_reader::read_interface(const fields& body)
{
    if (interfaces_.size() == most_interfaces)
        return fail(start_, fmt::format("more than {} interfaces in a section", most_interfaces));
    interface_of_section made{.link_type = body.u16(8), .snaplen = body.u32(12), .clock = {}};
    if (!read_options(body, 16, made))
        return false;
    interfaces_.push_back(made);
    return true;
}

bool pcapng_reader::read_options(const fields& body, std::size_t at, interface_of_section& of)
{
    std::uint8_t resolution = 6;
    std::int64_t offset_s = 0;
    std::size_t end = length_ - trailer_bytes;
    for (option found = option_at(body, at, end); found.code != option_end; found = option_at(body, at, end)) {
        if (!check_option(at, found))
            return false;
        if (found.code == option_tsresol)
            resolution = body.u8(found.value);
        if (found.code == option_tsoffset)
            offset_s = static_cast<std::int64_t>(body.u64(found.value));
        if (found.code == option_fcslen && found.bytes == 1)
            of.fcs_bytes = body.u8(found.value);
        at = found.next();
    }
    of.clock = ticks(resolution, offset_s);
    return true;
}

/// Whether the option lies in the block and has the length that its kind must have; else damage.
bool pcapng_reader::check_option(std::size_t at, const option& found)
{
    if (found.overruns)
        return fail(start_ + at, fmt::format("an option of {} bytes where the block has {} left", found.bytes,
                                             length_ - trailer_bytes - found.value));
    const char* name = nullptr;
    unsigned wanted = 1;
    switch (found.code) {
        case option_tsresol: name = "if_tsresol"; break;
        case option_tsoffset: name = "if_tsoffset", wanted = 8; break;
        default: return true;
    }
    return found.bytes == wanted ||
           fail(start_ + at, fmt::format("an option {} of {} bytes; it must have {}", name, found.bytes, wanted));
}

/// Bytes of the FCS by bits 5 to 8 of a packet's flags; 0 if they do not tell. Options of packets are no reason to call
/// a file damaged: the packet before them is whole.
std::uint32_t pcapng_reader::fcs_of_packet(const fields& body, std::size_t at) const
{
    std::uint32_t fcs_bytes = 0;
    std::size_t end = length_ - trailer_bytes;
    for (option found = option_at(body, at, end); found.code != option_end && !found.overruns;
         found = option_at(body, found.next(), end))
        if (found.code == option_flags && found.bytes == 4)
            fcs_bytes = body.u32(found.value) >> 5 & 0xf;
    return fcs_bytes;
}

/// "Enhanced Packet Block", and the obsolete "Packet Block", which differs in its first word.
bool pcapng_reader::read_packet(std::uint32_t type, std::span<const std::byte> bytes, frame& to)
{
    if (type == simple_packet)
        return read_simple_packet(bytes, to);
    fields body(bytes, swapped_);
    to.interface = type == enhanced_packet ? body.u32(8) : body.u16(8);
    if (to.interface >= interfaces_.size())
        return fail(start_ + 8,
                    fmt::format("a packet of interface {}, but the section has {}", to.interface, interfaces_.size()));
    to.time_ns = interfaces_[to.interface].clock.to_ns(std::uint64_t{body.u32(12)} << 32 | body.u32(16));
    to.has_time = true;
    to.time_clamped = ticks::clamped(to.time_ns);
    to.original_bytes = body.u32(24);
    constexpr std::size_t at = head_bytes + packet_bytes;
    const std::uint32_t captured = body.u32(20);
    if (!fill(to, bytes, at, captured))
        return false;
    std::uint32_t of_packet = fcs_of_packet(body, at + padded(captured));
    remove_fcs(to, of_packet != 0 ? of_packet : interfaces_[to.interface].fcs_bytes);
    return true;
}

/// "Simple Packet Block": on the first interface, without a time; the snap length limits its captured length.
bool pcapng_reader::read_simple_packet(std::span<const std::byte> bytes, frame& to)
{
    if (interfaces_.empty())
        return fail(start_, "a simple packet before the first interface");
    to.interface = 0;
    to.has_time = false;
    to.time_clamped = false;
    to.time_ns = 0;
    to.original_bytes = fields(bytes, swapped_).u32(8);
    std::uint32_t snaplen = interfaces_[0].snaplen;
    if (!fill(to, bytes, 12, snaplen == 0 ? to.original_bytes : std::min(to.original_bytes, snaplen)))
        return false;
    remove_fcs(to, interfaces_[0].fcs_bytes);
    return true;
}

bool pcapng_reader::fill(frame& to, std::span<const std::byte> bytes, std::size_t at, std::uint32_t captured)
{
    std::size_t room = length_ - trailer_bytes - at;
    if (captured > room)
        return fail(start_, fmt::format("a packet of {} bytes in a block with room for {}", captured, room));
    to.link_type = interfaces_[to.interface].link_type;
    if (captured > longest_frame && to.link_type == link_type_ethernet)
        return fail(start_, fmt::format("a packet of {} bytes; the limit is {}", captured, longest_frame));
    to.captured_bytes = captured;
    to.bytes = captured > longest_frame ? std::span<const std::byte>{} : bytes.subspan(at, captured);
    to.offset = start_;
    return true;
}

} // namespace

std::unique_ptr<capture_reader> make_pcapng_reader(input from)
{
    return std::make_unique<pcapng_reader>(std::move(from));
}

} // namespace weftio::replay
