// A GPU for tests. Without a GPU, a test is skipped and reports what it missed.
#pragma once

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu.kernel.h"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {

using namespace std::chrono_literals;

/// The GPU that WEFTIO_GPU names, else the first one.
inline std::string gpu_spec()
{
    const char* named = std::getenv("WEFTIO_GPU");
    return named ? named : "cuda:0";
}

/// The GPU that WEFTIO_SECOND_GPU names, else the next one.
inline std::string second_gpu_spec()
{
    const char* named = std::getenv("WEFTIO_SECOND_GPU");
    return named ? named : gpu_spec() == "cuda:1" ? "cuda:0" : "cuda:1";
}

class gpu_fixture : public testing::Test {
 protected:
    void SetUp() override
    {
        try {
            gpu_.emplace(device::open(gpu_spec()));
        } catch (const error& refused) {
            GTEST_SKIP() << "missed: everything that kernels do on a GPU; " << refused.what();
        }
    }
    const device& gpu() const { return *gpu_; }

 private:
    std::optional<device> gpu_;
};

/// A second GPU of the same host. With one GPU, a test is skipped.
class two_gpus_fixture : public gpu_fixture {
 protected:
    void SetUp() override
    {
        gpu_fixture::SetUp();
        if (IsSkipped())
            return;
        try {
            second_.emplace(device::open(second_gpu_spec()));
        } catch (const error& refused) {
            GTEST_SKIP() << "missed: a second GPU; " << refused.what();
        }
    }
    const device& second() const { return *second_; }

 private:
    std::optional<device> second_;
};

/// A test result that kernels write and the host reads.
class shared_verdict {
 public:
    explicit shared_verdict(const device& device) : memory_(device.allocate(sizeof(verdict), memory_kind::cpu_device))
    {}

    verdict* on_device() const { return static_cast<verdict*>(memory_.device_address()); }
    std::uint32_t packets() const { return weftio_load_acquire_sys_u32(&host()->packets); }
    std::uint32_t wrong() const { return weftio_load_acquire_sys_u32(&host()->wrong); }

 private:
    verdict* host() const { return static_cast<verdict*>(memory_.cpu_address()); }

    memory memory_;
};

/// A loopback port that holds packets instead of dropping them, and whose engine always spins.
inline port loopback()
{
    return port::open("loopback", {.idle = idle_policy::busy, .hold_when_full = port_options::hold::on});
}

} // namespace weftio::test
