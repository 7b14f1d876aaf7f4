// Configuration files: what each key sets, and what is reported about keys and values that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "storage/configuration.hpp"
#include "weftio/error.hpp"

namespace weftio::storage {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// All that is wrong with a file.
std::string mistakes_in(std::string_view text)
{
    try {
        parse_configuration(text, "cufile.json");
    } catch (const error& thrown) {
        EXPECT_EQ(thrown.code(), errc::invalid_argument);
        return thrown.what();
    }
    return "none";
}

/// The example of the vendor's guide, with its comments and its comma behind the last section.
constexpr std::string_view example = R"({
   "properties": {"rdma_dynamic_routing": true, "rdma_dynamic_routing_order": ["GPU_MEM_NVLINKS", "SYS_MEM"],
                  "rdma_dev_addr_list": ["10.0.0.1"]},
   "fs": {
   "lustre": {
      // IO threshold for read/write (param should be 4K aligned)) equal to or below which
      // cuFile will use posix read/write
      "posix_gds_min_kb" : 8,
      "rdma_dev_addr_list" : [],
      "mount_table" : {
         "/lustre/ai200/client1" : { "rdma_dev_addr_list" : ["172.172.1.40"] },
         "/lustre/ai200/client2/" : { "rdma_dev_addr_list" : [] }
      }
   },
   "nfs": { "rdma_dev_addr_list" : ["192.168.0.12", "fd00:0:0::12"] },
   "weka": { /* enable/disable RDMA write */ "rdma_write_support" : true },
   }
})";

TEST(Configuration, HasTheVendorsDefaults)
{
    const configuration made = parse_configuration("{}", "cufile.json");
    EXPECT_TRUE(made.allow_compat_mode);
    EXPECT_FALSE(made.force_compat_mode);
    EXPECT_FALSE(made.rdma_dynamic_routing);
    EXPECT_EQ(made.max_direct_io_bytes, 16384u * 1024);
    EXPECT_EQ(made.max_device_cache_bytes, 131072u * 1024);
    EXPECT_EQ(made.max_device_pinned_bytes, 33554432ull * 1024);
    EXPECT_EQ(made.poll_mode_max_bytes, 4096u);
    EXPECT_THAT(made.routing_order, ElementsAre(routing_policy::gpu_mem_nvlinks, routing_policy::gpu_mem,
                                                routing_policy::sys_mem, routing_policy::p2p));
    EXPECT_EQ(made.log, std::nullopt);
    EXPECT_EQ(made.io_depth, file_engine_options::default_depth);
    EXPECT_EQ(made.io_threads, file_engine_options::default_threads);
    EXPECT_THAT(made.remarks, IsEmpty());
    EXPECT_EQ(made.path, "cufile.json");
}

TEST(Configuration, ReadsTheExampleOfTheGuide)
{
    const configuration made = parse_configuration(example, "cufile.json");
    EXPECT_TRUE(made.rdma_dynamic_routing);
    EXPECT_THAT(made.routing_order, ElementsAre(routing_policy::gpu_mem_nvlinks, routing_policy::sys_mem));
    EXPECT_EQ(made.posix_at_most("lustre"), 8192u);
    EXPECT_EQ(made.posix_at_most("nfs"), 0u);
    EXPECT_EQ(made.posix_at_most("ext4"), 0u);
    EXPECT_TRUE(made.file_systems.at("weka").rdma_write);
    for (const configuration::remark& it : made.remarks)
        EXPECT_FALSE(it.unknown) << it.text;
}

TEST(Configuration, NamesNvidiasLibraryByItsFullPath)
{
    EXPECT_EQ(parse_configuration(R"({"weftio": {"cufile_library": "/opt/libcufile.so.0"}})", "c").cufile_library,
              "/opt/libcufile.so.0");
    EXPECT_THAT(mistakes_in(R"({"weftio": {"cufile_library": "libcufile.so.0"}})"),
                HasSubstr("is not an absolute path"));
}

TEST(Configuration, KnowsFileSystemsByTheNamesOfMountsAndOfTheVendor)
{
    const configuration made = parse_configuration(
        R"({"fs": {"nfs": {"posix_gds_min_kb": 4}, "weka": {"posix_gds_min_kb": 8}}})", "cufile.json");
    EXPECT_EQ(made.posix_at_most("nfs4"), 4096u);
    EXPECT_EQ(made.posix_at_most("wekafs"), 8192u);
    EXPECT_TRUE(made.names_mounts());
    EXPECT_FALSE(parse_configuration("{}", "c").names_mounts());
}

TEST(Configuration, PrefersTheMountThenTheFileSystemThenAll)
{
    const configuration made = parse_configuration(example, "cufile.json");
    EXPECT_THAT(made.addresses_of("lustre", "/lustre/ai200/client1"), ElementsAre("172.172.1.40"));
    EXPECT_THAT(made.addresses_of("lustre", "/lustre/ai200/client2"), ElementsAre("10.0.0.1")) << "its list is empty";
    EXPECT_THAT(made.addresses_of("nfs", "/mnt"), ElementsAre("192.168.0.12", "fd00::12"));
    EXPECT_THAT(made.addresses_of("beegfs", "/mnt"), ElementsAre("10.0.0.1"));
}

TEST(Configuration, GenericSettingsAreForFileSystemsWithoutTheirOwn)
{
    const configuration made = parse_configuration(
        R"({"fs": {"generic": {"posix_gds_min_kb": 16}, "nfs": {"posix_gds_min_kb": 4}}})", "cufile.json");
    EXPECT_EQ(made.posix_at_most("ext4"), 16384u);
    EXPECT_EQ(made.posix_at_most("nfs"), 4096u);
}

TEST(Configuration, RefusesAListBesideAMountTable)
{
    EXPECT_EQ(mistakes_in(R"({"fs": {
"nfs": {"rdma_dev_addr_list": ["10.0.0.1"], "mount_table": {"/mnt": {"rdma_dev_addr_list": ["10.0.0.2"]}}}}})"),
              "weftio: cufile.json:2: fs.nfs: rdma_dev_addr_list and mount_table both name storage NICs; leave one of "
              "them out");
}

TEST(Configuration, TellsUnknownKeysWithTheirLineAndGoesOn)
{
    const configuration made = parse_configuration("{\n\"propertys\": {},\n\"properties\": {\n \"use_pol_mode\": 1,\n"
                                                   " \"use_poll_mode\": true},\n \"fs\": {\"nfs\": {\"weka\": {}}}}",
                                                   "cufile.json");
    EXPECT_TRUE(made.use_poll_mode);
    ASSERT_EQ(made.remarks.size(), 4u);
    EXPECT_THAT(made.remarks[0].text, HasSubstr("weftio: cufile.json:2: propertys: unknown key; it has no effect"));
    EXPECT_EQ(made.remarks[1].text, "weftio: cufile.json:4: properties.use_pol_mode: unknown key; it has no effect");
    EXPECT_EQ(made.remarks[2].text,
              "weftio: cufile.json:5: properties.use_poll_mode: has no effect on file engines: no kernel driver polls");
    EXPECT_THAT(made.remarks[3].text, HasSubstr("cufile.json:6: fs.nfs.weka: unknown key"));
    EXPECT_TRUE(made.remarks[3].unknown);
}

TEST(Configuration, TellsKnownKeysThatHaveNoEffect)
{
    const configuration made = parse_configuration(R"({"profile": {"nvtx": true, "cufile_stats": 3}})", "cufile.json");
    ASSERT_EQ(made.remarks.size(), 1u);
    EXPECT_EQ(made.remarks[0].text,
              "weftio: cufile.json:1: profile.nvtx: has no effect on file engines: Weftio emits no profiler marks");
    EXPECT_FALSE(made.remarks[0].unknown);
    EXPECT_EQ(made.statistics_level, 3u);
}

TEST(Configuration, TellsEachWrongValue)
{
    const std::string message =
        mistakes_in("{\"properties\": {\n\"allow_compat_mode\": 1,\n\"max_direct_io_size_kb\": "
                    "6,\n\"max_device_cache_size_kb\": -4,\n\"rdma_dev_addr_list\": [\"10.0.0\"]}}");
    EXPECT_EQ(message,
              "weftio: cufile.json:2: properties.allow_compat_mode: a whole number instead of true or false\n"
              "weftio: cufile.json:3: properties.max_direct_io_size_kb: 6 is not a multiple of 4 from 4 to "
              "1048576\n"
              "weftio: cufile.json:4: properties.max_device_cache_size_kb: -4 is not a multiple of 4 from 0 to "
              "1099511627776\n"
              "weftio: cufile.json:5: properties.rdma_dev_addr_list: \"10.0.0\" is not an IP address; write the "
              "storage NIC's as \"192.168.0.12\" or \"fd00::12\"");
}

struct refused {
    const char* text;
    const char* why;
};

class RefusedConfiguration : public ::testing::TestWithParam<refused> {};

TEST_P(RefusedConfiguration, IsToldInOneSentence)
{
    EXPECT_THAT(mistakes_in(GetParam().text), HasSubstr(GetParam().why)) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedConfiguration,
    ::testing::Values(
        refused{"", "cufile.json:1: not JSON"}, refused{"{\n\"a\": }", "cufile.json:2: not JSON"},
        refused{"[1]", "cufile.json:1: a list instead of an object with sections"},
        refused{"{\"fs\": {}, \n\"fs\": {}}", "cufile.json:2: not JSON: \"fs\" is defined twice, first in line 1"},
        refused{R"({"logging": {"level": "LOUD"}})", "\"LOUD\" is not a level; use ERROR, WARN"},
        refused{R"({"logging": 3})", "logging: a whole number instead of a section"},
        refused{R"({"properties": {"rdma_dynamic_routing_order": ["GPU"]}})", "\"GPU\" is not a policy"},
        refused{R"({"properties": {"rdma_dynamic_routing_order": ["P2P", "P2P"]}})", "P2P is listed twice"},
        refused{R"({"properties": {"rdma_dynamic_routing_order": []}})", "the list is empty"},
        refused{R"({"properties": {"posix_pool_slab_count": [1]}})", "3 sizes, but posix_pool_slab_count has 1"},
        refused{R"({"properties": {"posix_pool_slab_size_kb": [8, 4, 12]}})", "the sizes must ascend"},
        refused{R"({"properties": {"posix_pool_slab_size_kb": [5]}})", "a multiple of 4"},
        refused{R"({"properties": {"poll_mode_max_size_kb": 4.5}})",
                "a number with a fraction instead of a whole number"},
        refused{R"({"profile": {"cufile_stats": 9223372036854775808}})", "9223372036854775808 is out of range"},
        refused{R"({"profile": {"cufile_stats": -99999999999999999999}})", "-99999999999999999999 is out of range"},
        refused{R"({"profile": {"nvtx": 0}, "logging": {"level": 18446744073709551616}})",
                "a whole number beyond 64 bits instead of a text"},
        refused{R"({"fs": {"a\u001b[2J\n": 1}})", "fs.a\\x1b[2J\\n: a whole number instead of a section"},
        refused{R"({"properties": {"rdma_dev_addr_list": ["1.2.3.4\u0000x"]}})", "is not an IP address"},
        refused{R"({"fs": {"nfs": {"posix_gds_min_kb": 3}}})", "3 is not a multiple of 4 from 0 to 1048576"},
        refused{R"({"fs": {"nfs": {"mount_table": {"mnt": {}}}}})", "not a mount point"},
        refused{R"({"fs": {"nfs": {"mount_table": {"/a": {}, "/a/": {}}}}})", "the mount point is listed twice"},
        refused{R"({"fs": {"weka": {"rdma_write_support": "yes"}}})", "a text instead of true or false"},
        refused{R"({"properties": {"rdma_dev_addr_list": ["::1", "0::1"]}})", "0::1 is listed twice"}));

TEST(Configuration, ItsRemarksSteerNoTerminal)
{
    const configuration made = parse_configuration(R"({"a\u001b[2J\n": {}})", "c");
    ASSERT_EQ(made.remarks.size(), 1U);
    EXPECT_THAT(made.remarks[0].text, HasSubstr("c:1: a\\x1b[2J\\n: unknown key"));
}

TEST(Configuration, RefusesDeepNesting)
{
    EXPECT_THAT(mistakes_in(std::string(100'000, '[')), HasSubstr("nested deeper than 32"));
}

TEST(Configuration, LeavesTextsThatLookLikeCommentsAlone)
{
    const configuration made = parse_configuration(R"({"denylist": {"mounts": ["//a,]", "/*b\"*/",]} } // end)", "c");
    EXPECT_THAT(made.denied_mounts, ElementsAre("//a,]", "/*b\"*/"));
}

TEST(Configuration, IsNamedByOptionThenByEitherVariable)
{
    ::unsetenv("WEFTIO_FILE_JSON");
    ::setenv("CUFILE_ENV_PATH_JSON", "/vendor.json", 1);
    EXPECT_EQ(configuration_path("/option.json"), "/option.json");
    EXPECT_EQ(configuration_path(""), "/vendor.json");
    ::setenv("WEFTIO_FILE_JSON", "/ours.json", 1);
    EXPECT_EQ(configuration_path(""), "/ours.json");
    ::unsetenv("WEFTIO_FILE_JSON");
    ::unsetenv("CUFILE_ENV_PATH_JSON");
    EXPECT_EQ(configuration_path(""), "");
}

TEST(Configuration, IsReadFromItsFile)
{
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("weftio_configuration." + std::to_string(::getpid()));
    std::ofstream(path) << R"({"logging": {"level": "TRACE"}})";
    EXPECT_EQ(read_configuration(path).log, logging_level::trace);
    std::filesystem::remove(path);
    EXPECT_EQ(read_configuration("").path, "");
    try {
        read_configuration(path);
        FAIL() << "the file is gone";
    } catch (const error& thrown) {
        EXPECT_EQ(thrown.code(), errc::not_found);
        EXPECT_THAT(thrown.what(), HasSubstr(path.string() + ": cannot read the configuration: No such file"));
    }
}

} // namespace

} // namespace weftio::storage
