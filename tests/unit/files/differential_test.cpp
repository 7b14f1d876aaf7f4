// Random operations, of every offset, size, alignment, memory and way, against pread and pwrite on a model file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <random>

#include "near_device.hpp"
#include "scratch_file.hpp"
#include "vendor.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"

namespace weftio::test {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_bytes = 90'000, file_span = 300'000, slack = 8192;

std::uint32_t seed()
{
    const char* wanted = std::getenv("WEFTIO_FILE_SEED");
    return wanted ? static_cast<std::uint32_t>(std::stoul(wanted)) : std::random_device()();
}

/// Memory of one kind, which the test sees, and what the same bytes would be without the library.
struct memory_of_a_kind {
    explicit memory_of_a_kind(bool near)
        : bytes(most_bytes + slack + 4096), model(bytes.size()),
          base((4096 - reinterpret_cast<std::uintptr_t>(bytes.data()) % 4096) % 4096)
    {
        if (near)
            device_memory = detail::internals::make_memory(near_block(bytes));
    }
    file_memory at(std::size_t offset)
    {
        return device_memory ? file_memory(device_memory, base + offset) : file_memory(bytes.data() + base + offset);
    }

    std::vector<std::byte> bytes, model;
    std::size_t base; ///< of the first byte on a page of its own
    memory device_memory;
};

/// A file that the library has, twice: with O_DIRECT and without; and its model.
class Differential : public testing::TestWithParam<const char*> {
 protected:
    struct operation {
        bool write;
        bool direct; ///< by the descriptor with O_DIRECT
        std::size_t memory, at, bytes;
        std::uint64_t offset;
    };

    void SetUp() override
    try {
        RecordProperty("seed", std::to_string(seed_));
        const std::string which = GetParam();
        file_engine_options options{.depth = 5, .threads = 3, .part_bytes = 16384};
        options.only = which == "uring"    ? file_way::uring
                       : which == "posix"  ? file_way::posix
                       : which == "cufile" ? file_way::cufile
                                           : file_way::none;
        const environment_variable library("WEFTIO_CUFILE_LIBRARY", WEFTIO_VENDOR_STAND_IN);
        if (which != "cufile" && which != "asked")
            unsetenv("WEFTIO_CUFILE_LIBRARY");
        options.reopen_direct = which == "reopened";
        engine_.emplace(options);
        files_.emplace_back(*engine_, plain_.descriptor());
        direct_ = open(plain_.path().c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
        if (direct_ < 0)
            GTEST_SKIP() << "no O_DIRECT in /tmp";
        files_.emplace_back(*engine_, direct_);
        memories_.emplace_back(false);
        memories_.emplace_back(true);
    } catch (const error& refused) {
        GTEST_SKIP() << refused.what();
    }
    void TearDown() override
    {
        files_.clear();
        close(direct_);
    }

    std::size_t below(std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most - 1)(random_); }
    /// A number that is often a multiple of a block.
    std::size_t often_aligned(std::size_t most)
    {
        constexpr std::array<std::size_t, 4> blocks{1, 1, 512, 4096};
        const std::size_t block = blocks[below(blocks.size())];
        return below(most) / block * block;
    }
    operation draw(std::uint64_t from, std::uint64_t to)
    {
        operation drawn{
            below(2) == 0, below(2) == 0, below(2), often_aligned(slack), 0, from + often_aligned(to - from)};
        drawn.bytes = std::min<std::size_t>(often_aligned(below(4) == 0 ? most_bytes : 6000), to - drawn.offset);
        return drawn;
    }
    /// What the model does; returns how many bytes.
    std::int64_t execute_on_model(const operation& drawn)
    {
        std::byte* const at = memories_[drawn.memory].model.data() + memories_[drawn.memory].base + drawn.at;
        const auto offset = static_cast<off_t>(drawn.offset);
        return drawn.write ? pwrite(model_.descriptor(), at, drawn.bytes, offset)
                           : pread(model_.descriptor(), at, drawn.bytes, offset);
    }
    /// Other bytes to write.
    void refresh()
    {
        for (memory_of_a_kind& each : memories_) {
            std::generate(each.model.begin(), each.model.end(), [this] { return static_cast<std::byte>(random_()); });
            each.bytes = each.model;
        }
    }
    file_result execute_on_stream(const weftio::file& file, const operation& drawn)
    {
        const auto offset = static_cast<std::int64_t>(drawn.offset), at = static_cast<std::int64_t>(drawn.at);
        std::int64_t result = 0;
        const weftio::file::at_execution arguments{&drawn.bytes, &offset, &at, &result};
        const file_memory memory = memories_[drawn.memory].at(0);
        drawn.write ? file.write_on(nullptr, memory, arguments) : file.read_on(nullptr, memory, arguments);
        engine_->drain();
        return {.bytes = result, .position = drawn.offset + static_cast<std::uint64_t>(result)};
    }
    file_result execute(const operation& drawn)
    {
        const file_memory memory = memories_[drawn.memory].at(drawn.at);
        const file& file = files_[drawn.direct];
        if (below(5) == 0)
            return execute_on_stream(file, drawn);
        return drawn.write ? file.write(memory, drawn.bytes, drawn.offset)
                           : file.read(memory, drawn.bytes, drawn.offset);
    }
    void expect_as_modelled(const operation& drawn, const file_result& result, std::int64_t wanted)
    {
        ASSERT_EQ(result.error, 0) << describe(drawn);
        ASSERT_EQ(result.bytes, wanted) << describe(drawn);
        if (!drawn.write) { // O_DIRECT may overwrite what was asked for behind the end of the file
            memory_of_a_kind& memory = memories_[drawn.memory];
            const std::size_t behind = memory.base + drawn.at + static_cast<std::size_t>(wanted);
            std::copy_n(&memory.model[behind], drawn.bytes - static_cast<std::size_t>(wanted), &memory.bytes[behind]);
        }
        ASSERT_EQ(result.position, drawn.offset + static_cast<std::uint64_t>(wanted)) << describe(drawn);
    }
    void expect_memories_as_modelled(const operation& drawn)
    {
        for (memory_of_a_kind& each : memories_)
            ASSERT_TRUE(each.bytes == each.model) << describe(drawn) << difference(each.bytes, each.model);
    }
    static std::string difference(const std::vector<std::byte>& here, const std::vector<std::byte>& model)
    {
        const auto first = std::mismatch(here.begin(), here.end(), model.begin());
        const auto last = std::mismatch(here.rbegin(), here.rend(), model.rbegin());
        return "; bytes " + std::to_string(first.first - here.begin()) + " to " +
               std::to_string(here.rend() - last.first - 1) + " differ";
    }
    void expect_files_equal()
    {
        std::vector<std::byte> here(file_span + 1), there(file_span + 1);
        ASSERT_EQ(pread(plain_.descriptor(), here.data(), here.size(), 0),
                  pread(model_.descriptor(), there.data(), there.size(), 0));
        ASSERT_TRUE(here == there) << "seed " << seed_;
    }
    std::string describe(const operation& drawn) const
    {
        return (drawn.write ? "write of " : "read of ") + std::to_string(drawn.bytes) + " at " +
               std::to_string(drawn.offset) + ", memory " + std::to_string(drawn.memory) + "+" +
               std::to_string(drawn.at) + (drawn.direct ? ", direct" : "") +
               "; WEFTIO_FILE_SEED=" + std::to_string(seed_);
    }
    std::vector<operation> draw_batch();

    const std::uint32_t seed_ = seed();
    std::minstd_rand random_{seed_};
    scratch_file plain_, model_;
    int direct_ = -1;
    std::optional<file_engine> engine_;
    std::vector<file> files_;
    std::vector<memory_of_a_kind> memories_;
};

/// Operations that are in flight together, each in a stripe of its own: their order is none.
std::vector<Differential::operation> Differential::draw_batch()
{
    std::vector<operation> drawn;
    constexpr std::size_t stripes = 6;
    constexpr std::uint64_t span = file_span / stripes / 4096 * 4096;
    constexpr std::size_t place = (most_bytes + slack) / stripes;
    for (std::size_t stripe = 0; stripe < 1 + below(stripes); ++stripe) {
        drawn.push_back(draw(stripe * span, (stripe + 1) * span));
        operation& made = drawn.back();
        made.at = stripe * place + made.at % 64;
        made.bytes = std::min(made.bytes, place - 64);
    }
    return drawn;
}

TEST_P(Differential, OneByOne)
{
    std::uint64_t bytes = 0;
    for (unsigned step = 0; step < 700; ++step) {
        if (step % 20 == 0)
            refresh();
        const operation drawn = draw(0, file_span);
        const std::int64_t wanted = execute_on_model(drawn);
        expect_as_modelled(drawn, execute(drawn), wanted);
        if (!drawn.write)
            expect_memories_as_modelled(drawn);
        if (HasFatalFailure())
            return;
        bytes += static_cast<std::uint64_t>(wanted);
    }
    expect_files_equal();
    std::uint64_t operations = 0, counted = 0, falls = 0;
    const file_counters counters = engine_->counters();
    for (const file_way_counters& each : counters.ways) {
        operations += each.operations();
        counted += each.bytes();
        EXPECT_EQ(each.errors(), 0U);
    }
    for (const std::uint64_t each : counters.falls)
        falls += each;
    EXPECT_EQ(operations, 700U);
    EXPECT_EQ(falls, 700U);
    EXPECT_EQ(counted, bytes);
}

TEST_P(Differential, InBatches)
{
    // Whether a read sees the end of the file would depend on a write behind it.
    ASSERT_EQ(ftruncate(plain_.descriptor(), file_span), 0);
    ASSERT_EQ(ftruncate(model_.descriptor(), file_span), 0);
    file_batch batch(*engine_, 6);
    for (unsigned step = 0; step < 150; ++step) {
        if (step % 8 == 0)
            refresh();
        std::vector<operation> drawn = draw_batch();
        for (operation& each : drawn) // two descriptors at once would mix direct and cached writes: see open(2)
            each.direct = drawn.front().direct;
        std::vector<file_operation> asked;
        std::vector<std::int64_t> wanted;
        for (const operation& each : drawn) {
            wanted.push_back(execute_on_model(each));
            asked.push_back({each.write ? file_operation::kind::write : file_operation::kind::read,
                             &files_[each.direct], memories_[each.memory].at(each.at), each.bytes, each.offset,
                             reinterpret_cast<void*>(asked.size())});
        }
        ASSERT_TRUE(batch.submit(asked));
        std::array<file_event, 4> events;
        for (std::size_t left = drawn.size(); left != 0;) {
            const std::size_t count = batch.status(1, events, 10s);
            ASSERT_NE(count, 0U);
            for (const file_event& each : std::span(events).first(count)) {
                const auto number = reinterpret_cast<std::uintptr_t>(each.cookie);
                expect_as_modelled(drawn[number], each.result, wanted[number]);
            }
            left -= count;
        }
        expect_memories_as_modelled(drawn.front());
        if (HasFatalFailure())
            return;
    }
    expect_files_equal();
}

std::string name_of(const testing::TestParamInfo<const char*>& engine)
{
    return engine.param;
}
INSTANTIATE_TEST_SUITE_P(Engines, Differential,
                         testing::Values("chosen", "uring", "posix", "reopened", "cufile", "asked"), name_of);

} // namespace

} // namespace weftio::test
