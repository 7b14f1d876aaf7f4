// What arrives on the far side of a wire, and when.
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
    std::uint64_t time_ns; ///< UTC, as the kernel stamped it
};

/// Captures the benchmark's frames on an interface, from the constructor to finish(), in a thread of its own.
class far_capture {
 public:
    /// @throws std::runtime_error the interface cannot be captured on
    far_capture(const std::string& interface, std::uint32_t expected);
    far_capture(const far_capture&) = delete;
    far_capture& operator=(const far_capture&) = delete;
    ~far_capture();

    /// Waits until all expected frames are there, or for a moment, and returns them in the order of their arrival.
    std::vector<arrival> finish();
    /// Frames that the capture itself lost, after finish().
    std::uint64_t lost() const noexcept { return lost_; }

 private:
    void run();
    static void take(unsigned char* self, const pcap_pkthdr* header, const unsigned char* bytes);

    pcap* handle_;
    std::uint32_t expected_;
    std::vector<arrival> arrivals_; ///< the thread's until it has ended
    std::atomic<std::uint32_t> seen_{0};
    std::atomic<bool> ending_{false};
    std::uint64_t lost_ = 0;
    std::thread thread_;
};

} // namespace weftio::bench
