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
    static constexpr std::uint32_t section_header = 0x0a0d0d0a, interface_description = 1; ///< types of blocks

    pcapng_builder() = default;
    /// @param name     of the interface
    /// @param comment  of the section; empty: none
    /// @param snap     bytes of a frame that the file has at most
    pcapng_builder(std::string_view name, std::string_view comment, std::uint32_t snap);

    /// Begins a section. @param comment  of the section; empty: none
    void section(std::string_view comment);
    /// Describes the next interface of the section; the first one is 0. @param snap  as above
    void interface(std::string_view name, std::uint32_t snap);
    /// @param start       of the frame, `snap` bytes at most
    /// @param whole_bytes of the frame
    /// @param time_ns     since 1970, UTC
    void add(std::span<const std::uint8_t> start, std::uint32_t whole_bytes, std::uint64_t time_ns,
             frame_direction direction, std::uint32_t interface = 0);
    const std::vector<std::uint8_t>& file() const noexcept { return file_; }
    /// Forgets the bytes of file(), which go on.
    void clear() noexcept { file_.clear(); }

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
