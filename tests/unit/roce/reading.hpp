// Shared by tests of RoCEv2 packets: captures, and an ICRC that is computed as the standard describes it.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <pcap/pcap.h>
#include <zlib.h>

#include "source_folder.hpp"

namespace roce_reading {

using bytes = std::vector<std::uint8_t>;

/// The bytes of hexadecimal digits; other characters are ignored.
inline bytes hex(std::string_view digits)
{
    bytes data;
    std::string pair;
    for (char digit : digits) {
        if (std::isxdigit(static_cast<unsigned char>(digit)) == 0)
            continue;
        pair += digit;
        if (pair.size() == 2) {
            data.push_back(static_cast<std::uint8_t>(std::stoul(pair, nullptr, 16)));
            pair.clear();
        }
    }
    return data;
}

/// Computes the ICRC of an IP packet that does not contain it, step by step and by zlib, without code of the library.
inline std::uint32_t icrc_by_zlib(std::span<const std::uint8_t> packet)
{
    bytes masked(8 + packet.size(), 0xff);
    std::copy(packet.begin(), packet.end(), masked.begin() + 8);
    const bool ipv4 = packet[0] >> 4 == 4;
    std::uint8_t* ip = &masked[8];
    const std::size_t udp = ipv4 ? 20 : 40;
    if (ipv4)
        ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
    else
        ip[0] = 0x6f, ip[1] = ip[2] = ip[3] = ip[7] = 0xff;
    ip[udp + 6] = ip[udp + 7] = ip[udp + 12] = 0xff;
    return static_cast<std::uint32_t>(crc32(0, masked.data(), static_cast<uInt>(masked.size())));
}

/// All complete frames of a capture.
inline std::vector<bytes> frames_of(const std::filesystem::path& path)
{
    std::string why(PCAP_ERRBUF_SIZE, '\0');
    const std::unique_ptr<pcap_t, decltype(&pcap_close)> file(pcap_open_offline(path.c_str(), why.data()), pcap_close);
    if (file == nullptr)
        throw std::runtime_error(why.c_str());
    std::vector<bytes> frames;
    pcap_pkthdr* header = nullptr;
    const u_char* data = nullptr;
    while (pcap_next_ex(file.get(), &header, &data) == 1)
        frames.emplace_back(data, data + header->caplen);
    return frames;
}

/// The captures of tests/captures/roce, and those of the folder that WEFTIO_ROCE_CAPTURES names.
inline std::vector<std::filesystem::path> captures()
{
    std::vector<std::filesystem::path> folders{weftio::test::source_folder() / "tests/captures/roce"};
    if (const char* more = std::getenv("WEFTIO_ROCE_CAPTURES"))
        folders.emplace_back(more);
    std::vector<std::filesystem::path> found;
    for (const auto& folder : folders) {
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            if (entry.path().extension() == ".pcap")
                found.push_back(entry.path());
        }
    }
    return found;
}

} // namespace roce_reading
