// Reads captures frame by frame.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "reader/input.hpp"

namespace weftio::replay {

inline constexpr std::uint32_t link_type_ethernet = 1;
/// The limit of libpcap and Wireshark for link types that can be sent.
inline constexpr std::uint32_t longest_frame = 262144;

/// One captured frame, without its frame check sequence (FCS) if the capture says that it has one. `bytes` belong to
/// the reader and are valid until its next call.
struct frame {
    std::span<const std::byte> bytes; ///< the captured bytes; empty if there are more than `longest_frame`
    std::uint32_t captured_bytes = 0; ///< length in the record, without the FCS
    std::uint32_t original_bytes = 0; ///< length on the wire, without the FCS
    std::uint32_t fcs_bytes = 0;      ///< length of the FCS; 0 if the capture says nothing of one
    std::uint32_t fcs_captured = 0;   ///< bytes of it in the record: fewer than `fcs_bytes` in a truncated frame
    std::int64_t time_ns = 0;         ///< since 1970, clamped to 64 bits
    bool has_time = true;             ///< false for pcapng's simple packets
    bool time_clamped = false;        ///< the record's time does not fit 64 bits: before 1677 or after 2262
    std::uint32_t interface = 0;      ///< number of the interface in its section
    std::uint32_t link_type = 0;
    std::uint64_t offset = 0; ///< offset of the record in the decompressed file
};

/// Where a file is damaged, and how.
struct damage {
    std::uint64_t offset = 0;
    std::string reason;
};

/// Reads frames one after the other. Trusts no length in the file: memory stays bounded, and every file ends in an end
/// or in damage. One thread at a time.
class capture_reader {
 public:
    virtual ~capture_reader() = default;
    /// Reads the next frame. Returns false at the end or at damage, and at every call after that. Blocks while the
    /// source does.
    virtual bool next(frame& to) = 0;
    /// Goes back to the first frame. Returns false if the source cannot.
    virtual bool rewind() = 0;
    virtual const char* format() const noexcept = 0;
    /// Fraction of the file that has been read, 0 to 1; nothing if unknown.
    std::optional<double> share() const { return in_.share(); }

    const std::optional<damage>& damaged() const noexcept { return damage_; }

 protected:
    explicit capture_reader(input from) : in_(std::move(from)) {}
    /// Removes the FCS of `fcs_bytes` bytes from the end of a frame whose lengths include it. A truncated frame has a
    /// part of it, or none.
    static void remove_fcs(frame& from, std::uint32_t fcs_bytes) noexcept;
    /// Records the damage. Returns false, so that readers can return the result.
    bool fail(std::uint64_t offset, std::string reason);
    /// Records that the file ends inside `what`, or why it could not be read further.
    bool fail_truncated(std::uint64_t offset, const char* what, std::uint64_t wanted, std::uint64_t got);

    input in_;
    std::optional<damage> damage_;
};

/// Makes a reader for the format of `from`; for an unknown format one that is damaged at offset 0.
std::unique_ptr<capture_reader> make_reader(input from);
std::unique_ptr<capture_reader> make_pcap_reader(input from);
std::unique_ptr<capture_reader> make_pcapng_reader(input from);

/// Opens a capture by name. @throws open_error
std::unique_ptr<capture_reader> open_capture(const std::string& path, const std::atomic<bool>* stop = nullptr);

} // namespace weftio::replay
