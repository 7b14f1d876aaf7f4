#include "pacing/tcpreplay.hpp"

#include <fmt/format.h>
#include <pcap/pcap.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "common/command.hpp"
#include "pacing/frame.hpp"

namespace weftio::bench {

namespace {

/// The path of a temporary file. The destructor removes the file.
struct temporary_file {
    temporary_file() : path((std::filesystem::temp_directory_path() / "weftio-pacing-XXXXXX").string())
    {
        int file = mkstemp(path.data());
        if (file < 0)
            throw std::runtime_error(fmt::format("cannot create temporary file {}: {}", path, std::strerror(errno)));
        close(file);
    }
    temporary_file(const temporary_file&) = delete;
    ~temporary_file() { unlink(path.c_str()); }

    std::string path;
};

/// Writes timestamps in microseconds if these are exact, because tcpreplay 4.4 reads nanoseconds as microseconds.
void write_capture(const std::string& path, std::uint32_t count, std::uint64_t interval_ns)
{
    bool micro = interval_ns % 1000 == 0;
    std::unique_ptr<pcap_t, void (*)(pcap_t*)> format(
        pcap_open_dead_with_tstamp_precision(DLT_EN10MB, FRAME_BYTES,
                                             micro ? PCAP_TSTAMP_PRECISION_MICRO : PCAP_TSTAMP_PRECISION_NANO),
        pcap_close);
    std::unique_ptr<pcap_dumper_t, void (*)(pcap_dumper_t*)> file(pcap_dump_open(format.get(), path.c_str()),
                                                                  pcap_dump_close);
    if (!file)
        throw std::runtime_error(pcap_geterr(format.get()));
    for (std::uint32_t sequence = 0; sequence < count; ++sequence) {
        std::uint64_t time_ns = 1'000'000'000 + sequence * interval_ns;
        auto frame = make_frame({}, sequence);
        pcap_pkthdr header{};
        header.caplen = header.len = FRAME_BYTES;
        header.ts.tv_sec = static_cast<time_t>(time_ns / 1'000'000'000);
        header.ts.tv_usec = static_cast<suseconds_t>(time_ns % 1'000'000'000 / (micro ? 1000 : 1));
        pcap_dump(reinterpret_cast<unsigned char*>(file.get()), &header, frame.data());
    }
}

} // namespace

std::string run_tcpreplay(const std::string& interface, std::uint32_t count, std::uint64_t interval_ns)
{
    temporary_file capture;
    write_capture(capture.path, count, interval_ns);
    int status = run_command({"tcpreplay", "--quiet", "--preload-pcap", "--intf1=" + interface, capture.path});
    if (status == 127)
        return "not installed";
    return status == 0 ? "" : fmt::format("it exited with status {}", status);
}

} // namespace weftio::bench
