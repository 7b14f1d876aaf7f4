// Every host function that returns an error, with arguments that no program should pass. CMake finds the functions in
// the headers.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include "doca_argp.h"
#include "doca_buf.h"
#include "doca_buf_array.h"
#include "doca_buf_inventory.h"
#include "doca_ctx.h"
#include "doca_dev.h"
#include "doca_dma.h"
#include "doca_dpdk.h"
#include "doca_eth_rxq.h"
#include "doca_eth_txq.h"
#include "doca_eth_txq_gpu_data_path.h"
#include "doca_flow.h"
#include "doca_gpunetio.h"
#include "doca_log.h"
#include "doca_mmap.h"
#include "doca_pe.h"
#if __has_include("doca_rdma.h")
#include "doca_rdma.h"
#endif
#include "source_folder.hpp"

namespace {

/// What is no object of any kind, and an empty string.
alignas(64) std::byte stranger[65536];

/// How pointers are passed: none, a stranger's, or a stranger's but for one.
struct pointers {
    bool are_strangers = false;
    std::size_t null = SIZE_MAX; ///< number of the argument that is null nonetheless
};

template <class T>
T argument([[maybe_unused]] std::size_t number, [[maybe_unused]] pointers how)
{
    if constexpr (std::is_pointer_v<T>) {
        if (!how.are_strangers || number == how.null)
            return nullptr;
        return reinterpret_cast<T>(stranger);
    } else {
        return T{};
    }
}

template <class... Arguments, std::size_t... Numbers>
doca_error_t call(doca_error_t (*function)(Arguments...), [[maybe_unused]] pointers how,
                  std::index_sequence<Numbers...>)
{
    return function(argument<Arguments>(Numbers, how)...);
}

/// Functions whose pointers are places for results, which a stranger is, too.
const std::set<std::string_view> only_results{"doca_devinfo_create_list", "doca_flow_cfg_create",
                                              "doca_flow_port_cfg_create", "doca_mmap_create", "doca_pe_create"};

template <class... Arguments>
void expect_refusal(const char* name, doca_error_t (*function)(Arguments...))
{
    constexpr std::size_t count = sizeof...(Arguments);
    if (std::string_view(name).starts_with("doca_argp_") || std::string_view(name).starts_with("doca_log_"))
        return; // there is one parser and one log, and a stranger is a program's FILE: argp_test.cpp, log_test.cpp
    auto refuses = [&](pointers how) {
        const doca_error_t result = call(function, how, std::make_index_sequence<count>{});
        const bool may_succeed = how.are_strangers && how.null >= count && only_results.contains(name);
        EXPECT_TRUE(result == DOCA_ERROR_INVALID_VALUE || (result == DOCA_SUCCESS && may_succeed))
            << name << " returns " << doca_error_get_name(result) << " for "
            << (how.are_strangers ? "strangers" : "null pointers") << ", null " << how.null;
    };
    refuses({});
    refuses({.are_strangers = true});
    for (std::size_t null = 0; null < count; ++null)
        refuses({.are_strangers = true, .null = null});
}

TEST(DocaFunctions, RefuseNullPointersAndWhatIsNoObject)
{
    std::size_t count = 0;
#define FUNCTION(NAME) expect_refusal(#NAME, NAME), ++count;
#include "doca_functions.inc"
    EXPECT_GE(count, 100u);
}

/// All that the tests of these functions say.
std::string tests()
{
    std::string all;
    for (const char* folder : {"tests/unit/doca", "tests/unit/doca_log"})
        for (const auto& entry : std::filesystem::directory_iterator(weftio::test::source_folder() / folder))
            if (entry.path().filename() != "functions_test.cpp") {
                std::ifstream file(entry.path());
                all.append(std::istreambuf_iterator<char>(file), {});
            }
    return all;
}

TEST(DocaFunctions, AreAllCalledByATest)
{
    const std::string text = tests();
#undef FUNCTION
#define FUNCTION(NAME) EXPECT_NE(text.find(#NAME "("), std::string::npos) << #NAME;
#include "doca_functions.inc"
}

} // namespace
