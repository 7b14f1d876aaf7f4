// Captures, frame by frame.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "reader/input.hpp"

namespace weftio::replay {

inline constexpr std::uint32_t link_type_ethernet = 1;
/// No frame of a link type that can be sent is longer: the bound of libpcap and Wireshark.
inline constexpr std::uint32_t longest_frame = 262144;

/// One captured frame. `bytes` are the reader's and valid until its next call.
struct frame {
    std::span<const std::byte> bytes; ///< what was captured; nothing when that is more than `longest_frame`
    std::uint32_t captured_bytes = 0; ///< as the record says
    std::uint32_t original_bytes = 0; ///< on the wire
    std::int64_t time_ns = 0;         ///< since 1970, clamped to what 64 bits hold
    bool has_time = true;             ///< pcapng's simple packets have none
    bool time_clamped = false;        ///< the record's time is beyond what 64 bits hold: before 1677 or after 2262
    std::uint32_t interface = 0;      ///< in its section
    std::uint32_t link_type = 0;
    std::uint64_t offset = 0; ///< of the record in the file, after decompression
};

/// Where a file stops making sense, and why.
struct damage {
    std::uint64_t offset = 0;
    std::string reason;
};

/// Reads frames one after the other. No length in the file is trusted: whatever it says, memory stays bounded and every
/// file ends in an end or in damage. One thread at a time.
class capture_reader {
 public:
    virtual ~capture_reader() = default;
    /// The next frame. Returns false at the end and at damage; then also ever after. Blocks while the source does.
    virtual bool next(frame& to) = 0;
    /// Starts over. Returns false where the source cannot.
    virtual bool rewind() = 0;
    virtual const char* format() const noexcept = 0;
    /// Which part of the file has been read, 0 to 1; nothing where that is unknown.
    std::optional<double> share() const { return in_.share(); }

    const std::optional<damage>& damaged() const noexcept { return damage_; }

 protected:
    explicit capture_reader(input from) : in_(std::move(from)) {}
    /// Notes the damage; false, so that readers can return it.
    bool fail(std::uint64_t offset, std::string reason);
    /// Notes that the file ends inside `what`, or why it could not be read further.
    bool fail_truncated(std::uint64_t offset, const char* what, std::uint64_t wanted, std::uint64_t got);

    input in_;
    std::optional<damage> damage_;
};

/// A reader for whatever `from` turns out to hold; something unknown is a reader that is damaged at offset 0.
std::unique_ptr<capture_reader> make_reader(input from);
std::unique_ptr<capture_reader> make_pcap_reader(input from);
std::unique_ptr<capture_reader> make_pcapng_reader(input from);

/// Opens a capture by name. @throws open_error
std::unique_ptr<capture_reader> open_capture(const std::string& path, const std::atomic<bool>* stop = nullptr);

} // namespace weftio::replay
