// Capture files of Ethernet frames in pcapng (draft-ietf-opsawg-pcapng): built in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weftio::net {

enum class frame_direction : std::uint8_t { received = 1, sent = 2 }; ///< numbers are those of epb_flags

/// A section with one interface, and frames with their times in nanoseconds. Numbers have the byte order of this host,
/// which the file says.
class pcapng_builder {
 public:
    /// @param name     of the interface
    /// @param comment  of the section; empty: none
    /// @param snap     bytes of a frame that the file has at most
    pcapng_builder(std::string_view name, std::string_view comment, std::uint32_t snap);

    /// @param start       of the frame, `snap` bytes at most
    /// @param whole_bytes of the frame
    /// @param time_ns     since 1970, UTC
    void add(std::span<const std::uint8_t> start, std::uint32_t whole_bytes, std::uint64_t time_ns,
             frame_direction direction);
    const std::vector<std::uint8_t>& file() const noexcept { return file_; }

 private:
    void number(std::uint32_t value);
    void bytes(std::span<const std::uint8_t> from);
    void pad();
    void option(std::uint16_t code, std::span<const std::uint8_t> value);
    void text_option(std::uint16_t code, std::string_view value);
    std::size_t begin_block(std::uint32_t type);
    void end_block(std::size_t at);

    std::vector<std::uint8_t> file_;
};

} // namespace weftio::net
