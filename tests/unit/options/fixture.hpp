// A device of each kind, and a loopback port.
#pragma once

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {

/// Runs each test on the device that its parameter names.
class OnEachDevice : public testing::TestWithParam<const char*> {
 protected:
    void SetUp() override
    {
        try {
            where_.emplace(device::open(GetParam()));
        } catch (const error& refused) {
            GTEST_SKIP() << "missed: options on " << GetParam() << "; " << refused.what();
        }
    }
    const device& where() const { return *where_; }

    port port_ = port::open("loopback");

 private:
    std::optional<device> where_;
};

} // namespace weftio::test
