// An open OpenCL device, and shorthands for its memory and launches.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "devices/backend.hpp"
#include "patience.hpp"
#include "weftio/device.hpp"
#include "weftio/error.hpp"

namespace weftio::test {

using namespace std::chrono_literals;

/// Memory of the device, freed at the end of the test.
template <class T>
class array {
 public:
    array(std::shared_ptr<devices::device_backend> device, std::size_t count)
        : device_(std::move(device)), memory_(device_->allocate(count * sizeof(T), 64, memory_kind::cpu_device))
    {}
    ~array() { device_->release(memory_, memory_kind::cpu_device); }
    array(const array&) = delete;
    array& operator=(const array&) = delete;

    T* data() const { return static_cast<T*>(memory_.cpu); }
    T& operator[](std::size_t at) const { return data()[at]; }

 private:
    std::shared_ptr<devices::device_backend> device_;
    devices::device_backend::allocation memory_;
};

class opencl_fixture : public testing::Test {
 protected:
    void SetUp() override
    {
        try {
            device_ = devices::open_opencl(-1);
        } catch (const error& failure) {
            GTEST_SKIP() << "missed: everything that kernels do on OpenCL; " << failure.what();
        }
    }

    template <class T>
    array<T> allocate(std::size_t count) const
    {
        return array<T>(device_, count);
    }

    template <class... Arguments>
    std::shared_ptr<devices::running_backend> launch(std::string_view source, const char* name, grid shape,
                                                     Arguments... arguments)
    {
        devices::launch_request request{};
        request.name = name;
        request.source = source;
        request.file = "test_kernel.h";
        request.shape = shape;
        (request.arguments.push_back({&arguments, sizeof arguments, std::is_pointer_v<Arguments>, 0}), ...);
        return device_->launch(request, device_);
    }

    /// Launches and waits for the end.
    template <class... Arguments>
    void run(std::string_view source, const char* name, grid shape, Arguments... arguments)
    {
        ASSERT_TRUE(launch(source, name, shape, arguments...)->wait_for(patience));
    }

    std::shared_ptr<devices::device_backend> device_;
};

/// Code and text of the exception that the call throws. The test fails if it throws none.
template <class Call>
std::pair<errc, std::string> refusal_of(Call&& call)
{
    try {
        call();
    } catch (const error& failure) {
        return {static_cast<errc>(failure.code().value()), failure.what()};
    }
    ADD_FAILURE() << "was not refused";
    return {};
}

} // namespace weftio::test
