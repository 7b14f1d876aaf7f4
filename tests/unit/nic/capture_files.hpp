// Capture files that tests write byte by byte.
#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "unit/steering/frames.hpp"

namespace weftio::test {

/// A temporary folder. The destructor removes it and its content.
class scratch_folder {
 public:
    scratch_folder()
    {
        std::string name = (std::filesystem::temp_directory_path() / "weftio_test_XXXXXX").string();
        path_ = mkdtemp(name.data());
    }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;
    ~scratch_folder() { std::filesystem::remove_all(path_); }

    std::string operator/(const std::string& name) const { return path_ / name; }
    /// Writes a file and returns its path.
    std::string write(const std::string& name, const frames::bytes& content) const
    {
        std::ofstream(path_ / name, std::ios::binary)
            .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
        return path_ / name;
    }

 private:
    std::filesystem::path path_;
};

struct timed_frame {
    std::uint32_t seconds = 0;
    std::uint32_t fraction = 0; ///< microseconds, or nanoseconds in a file with nanosecond resolution
    frames::bytes bytes;
};

inline void put_word(frames::bytes& to, std::uint32_t value, bool swapped = false)
{
    for (unsigned at = 0; at < 4; ++at)
        to.push_back(static_cast<std::uint8_t>(value >> 8 * (swapped ? 3 - at : at)));
}

struct pcap_form {
    std::uint32_t magic = 0xa1b2c3d4; ///< of a file with microsecond resolution
    bool swapped = false;
    std::uint32_t link_type = 1;
};

inline frames::bytes pcap_file(const std::vector<timed_frame>& records, pcap_form form = {})
{
    frames::bytes file;
    put_word(file, form.magic, form.swapped);
    put_word(file, form.swapped ? 2 << 16 | 4 : 4 << 16 | 2, form.swapped);
    for (std::uint32_t word : {0u, 0u, 262144u, form.link_type})
        put_word(file, word, form.swapped);
    for (const timed_frame& record : records) {
        auto bytes = static_cast<std::uint32_t>(record.bytes.size());
        for (std::uint32_t word : {record.seconds, record.fraction, bytes, bytes})
            put_word(file, word, form.swapped);
        frames::append(file, record.bytes);
    }
    return file;
}

inline void put_block(frames::bytes& to, std::uint32_t type, frames::bytes body)
{
    body.resize((body.size() + 3) / 4 * 4);
    auto bytes = static_cast<std::uint32_t>(body.size() + 12);
    put_word(to, type);
    put_word(to, bytes);
    frames::append(to, body);
    put_word(to, bytes);
}

/// Little-endian, one section, one interface, microseconds.
inline frames::bytes pcapng_file(const std::vector<timed_frame>& records, std::uint16_t link_type = 1,
                                 std::uint8_t fcs_bytes = 0)
{
    frames::bytes file, section, interface;
    for (std::uint32_t word : {0x1a2b3c4du, 1u, 0xffffffffu, 0xffffffffu})
        put_word(section, word);
    put_block(file, 0x0a0d0d0a, section);
    put_word(interface, link_type);
    put_word(interface, 262144);
    if (fcs_bytes != 0) { // if_description, if_fcslen, end of options
        for (std::uint32_t word : {5u << 16 | 3u, 0x65726f63u, 0x73u, 1u << 16 | 13u, std::uint32_t{fcs_bytes}, 0u})
            put_word(interface, word);
    }
    put_block(file, 1, interface);
    for (const timed_frame& record : records) {
        frames::bytes packet;
        std::uint64_t ticks = record.seconds * std::uint64_t{1'000'000} + record.fraction;
        auto bytes = static_cast<std::uint32_t>(record.bytes.size());
        for (std::uint32_t word :
             {0u, static_cast<std::uint32_t>(ticks >> 32), static_cast<std::uint32_t>(ticks), bytes, bytes})
            put_word(packet, word);
        frames::append(packet, record.bytes);
        put_block(file, 6, packet);
    }
    return file;
}

} // namespace weftio::test
