// The NICs that the suites of this folder run on.
#pragma once

#include <array>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "weftio/options.hpp"

namespace weftio::test {

struct nic_case {
    const char* name;
    const char* spec;
    engine_mode mode;
};
inline void PrintTo(const nic_case& which, std::ostream* out)
{
    *out << which.name;
}
inline std::string name_of_nic(const testing::TestParamInfo<nic_case>& info)
{
    return info.param.name;
}
inline constexpr std::array<nic_case, 4> every_nic{{{"software", "loopback", engine_mode::thread},
                                                    {"software_inline", "loopback", engine_mode::inline_worker},
                                                    {"cable", "cable:0", engine_mode::thread},
                                                    {"cable_inline", "cable:0", engine_mode::inline_worker}}};

} // namespace weftio::test
