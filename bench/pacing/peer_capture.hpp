// Captures the frames that arrive at the other end of a wire, with their times.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

struct pcap;
struct pcap_pkthdr;

namespace weftio::bench {

struct arrival {
    std::uint32_t sequence;
    std::uint64_t time_ns; ///< UTC, the kernel's timestamp
};

/// Captures the benchmark's frames on an interface, from the constructor to finish(), in a thread of its own.
class peer_capture {
 public:
    /// @throws std::runtime_error capturing on the interface failed
    peer_capture(const std::string& interface, std::uint32_t expected);
    peer_capture(const peer_capture&) = delete;
    peer_capture& operator=(const peer_capture&) = delete;
    ~peer_capture();

    /// Waits a short time for the expected frames, and returns the captured ones in the order of their arrival.
    std::vector<arrival> finish();
    /// Number of frames that the capture itself lost. Call it after finish().
    std::uint64_t lost() const noexcept { return lost_; }

 private:
    void run();
    static void take(unsigned char* self, const pcap_pkthdr* header, const unsigned char* bytes);

    pcap* handle_;
    std::uint32_t expected_;
    std::vector<arrival> arrivals_; ///< used by the thread only, until it has ended
    std::atomic<std::uint32_t> seen_{0};
    std::atomic<bool> ending_{false};
    std::uint64_t lost_ = 0;
    std::thread thread_;
};

} // namespace weftio::bench
