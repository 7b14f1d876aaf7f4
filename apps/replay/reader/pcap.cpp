// Classic pcap: draft-ietf-opsawg-pcap, and the older minor versions that libpcap reads.
#include <fmt/format.h>

#include <utility>

#include "reader/capture.hpp"
#include "reader/fields.hpp"

namespace weftio::replay {

namespace {

constexpr std::size_t header_bytes = 24, record_header_bytes = 16, modified_header_bytes = 24;

/// Longest record of a file of this link type; types above `longest_frame` are USB and buses, which are never sent.
std::uint32_t longest_record(std::uint32_t link_type)
{
    switch (link_type) {
        case 231: // D-Bus
        case 220: // Linux USB, memory-mapped
        case 249: // USBPcap
            return 128u * 1024 * 1024;
        case 279: // EBHSCR
            return 8u * 1024 * 1024;
        default: return longest_frame;
    }
}

/// Bytes of the frame check sequence of every frame: bits 28 to 31 of the link type's word count 16-bit words, and are
/// valid if bit 26 is set.
std::uint32_t fcs_bytes_of(std::uint32_t link_type_word)
{
    constexpr std::uint32_t length_present = 0x04000000;
    return link_type_word & length_present ? (link_type_word >> 28) * 2 : 0;
}

class pcap_reader final : public capture_reader {
 public:
    explicit pcap_reader(input from) : capture_reader(std::move(from)) { read_header(); }

    bool next(frame& to) override;
    bool rewind() override
    {
        if (!in_.rewind())
            return false;
        damage_.reset();
        pending_ = 0;
        read_header();
        return true;
    }
    const char* format() const noexcept override { return nanoseconds_ ? "pcap, nanoseconds" : "pcap"; }

 private:
    void read_header();
    void order_lengths(std::uint32_t& captured, std::uint32_t& original) const;
    bool read_body(std::uint64_t start, std::uint32_t captured, frame& to);

    bool swapped_ = false, nanoseconds_ = false;
    std::size_t record_header_ = record_header_bytes;
    std::uint16_t major_ = 0, minor_ = 0;
    std::uint32_t link_type_ = 0, fcs_bytes_ = 0;
    std::uint64_t pending_ = 0; ///< bytes of the frame returned last
};

void pcap_reader::read_header()
{
    auto head = in_.peek(header_bytes);
    if (head.size() < header_bytes) {
        fail_truncated(0, "the file header", header_bytes, head.size());
        return;
    }
    std::uint32_t magic = fields(head, false).u32(0);
    swapped_ = magic != 0xa1b2c3d4 && magic != 0xa1b23c4d && magic != 0xa1b2cd34;
    fields header(head, swapped_);
    nanoseconds_ = header.u32(0) == 0xa1b23c4d;
    record_header_ = header.u32(0) == 0xa1b2cd34 ? modified_header_bytes : record_header_bytes;
    major_ = header.u16(4);
    minor_ = header.u16(6);
    link_type_ = header.u32(20) & 0x03ffffff;
    fcs_bytes_ = fcs_bytes_of(header.u32(20));
    if (!((major_ == 2 && minor_ <= 4) || major_ == 543))
        fail(4, fmt::format("version {}.{} is unsupported; 2.0 to 2.4 are supported", major_, minor_));
    else
        in_.consume(header_bytes);
}

/// Swaps the two lengths for versions below 2.3, which had them in the other order; version 2.3 was written both ways.
void pcap_reader::order_lengths(std::uint32_t& captured, std::uint32_t& original) const
{
    if (major_ == 543 || minor_ < 3 || (minor_ == 3 && captured > original))
        std::swap(captured, original);
}

bool pcap_reader::next(frame& to)
{
    if (damage_)
        return false;
    in_.skip(std::exchange(pending_, 0));
    std::uint64_t start = in_.offset();
    auto head = in_.peek(record_header_);
    if (head.empty() && in_.failure().empty())
        return false;
    if (head.size() < record_header_)
        return fail_truncated(start, "a record header", record_header_, head.size());
    fields record(head, swapped_);
    std::uint32_t captured = record.u32(8), original = record.u32(12);
    order_lengths(captured, original);
    if (captured > longest_record(link_type_))
        return fail(start, fmt::format("a record of {} bytes; the limit is {}", captured, longest_record(link_type_)));
    to.time_ns = std::int64_t{record.u32(0)} * 1'000'000'000 + std::int64_t{record.u32(4)} * (nanoseconds_ ? 1 : 1000);
    in_.consume(record_header_);
    if (!read_body(start, captured, to))
        return false;
    to.captured_bytes = captured;
    to.original_bytes = original;
    to.has_time = true;
    to.interface = 0;
    to.link_type = link_type_;
    to.offset = start;
    remove_fcs(to, fcs_bytes_);
    return true;
}

/// Reads the frame's bytes. Skips them if the frame is too long to be sent, to save memory.
bool pcap_reader::read_body(std::uint64_t start, std::uint32_t captured, frame& to)
{
    std::uint64_t got = 0;
    if (captured > longest_frame) {
        to.bytes = {};
        got = in_.skip(captured);
    } else {
        to.bytes = in_.peek(captured);
        got = to.bytes.size();
        pending_ = got;
    }
    return got == captured || fail_truncated(start, "a frame", captured, got);
}

} // namespace

std::unique_ptr<capture_reader> make_pcap_reader(input from)
{
    return std::make_unique<pcap_reader>(std::move(from));
}

} // namespace weftio::replay
