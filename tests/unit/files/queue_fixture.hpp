// A file engine, a queue, a region, and a file with known bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "nic/soft/files/soft_files.hpp"
#include "scratch_file.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/file_queue.hpp"
#include "weftio/progress.hpp"

namespace weftio::test {

/// Writes `bytes` at the start of the file.
inline void fill(const scratch_file& file, const std::vector<std::byte>& bytes)
{
    for (std::size_t at = 0; at < bytes.size();) {
        const ssize_t more = pwrite(file.descriptor(), &bytes[at], bytes.size() - at, static_cast<off_t>(at));
        ASSERT_GT(more, 0);
        at += static_cast<std::size_t>(more);
    }
}

/// Memory that a file engine may read and write.
class file_bytes {
 public:
    file_bytes(const file_engine& engine, const device& device, std::size_t bytes, region_options options = {})
        : memory_(device.allocate(bytes, memory_kind::cpu_device)), region(engine, memory_, options)
    {}

    std::byte* data() const { return static_cast<std::byte*>(memory_.cpu_address()); }
    weftio_dev_buf buffer() const { return region.buffer(); }
    bool has(const std::vector<std::byte>& wanted, std::size_t from, std::size_t bytes, std::size_t at = 0) const
    {
        return std::memcmp(data() + at, &wanted[from], bytes) == 0;
    }

 private:
    memory memory_;

 public:
    memory_region region;
};

/// The host's side of a queue on the CPU, in both modes of an engine, with io_uring and without.
class FileQueue : public testing::TestWithParam<std::tuple<engine_mode, file_way>> {
 protected:
    static constexpr std::size_t bytes = 1 << 20;

    static std::unique_ptr<file_engine> make_engine()
    try {
        const auto [mode, way] = GetParam();
        return std::make_unique<file_engine>(file_engine_options{.only = way, .threads = 2, .mode = mode});
    } catch (const error&) {
        return nullptr; // io_uring is not permitted here
    }
    void SetUp() override
    {
        if (!made_)
            GTEST_SKIP() << "io_uring is refused here";
        fill(scratch, content);
        one = std::make_unique<file>(*made_, scratch.descriptor());
        queue = std::make_unique<file_queue>(*made_, cpu, file_queue_options{.entries = 64});
        memory = std::make_unique<file_bytes>(*made_, cpu, bytes);
    }

    const file_engine& engine() const { return *made_; }
    weftio_dev_file_queue* handle() const { return queue->handle(); }
    std::int32_t read(std::uint64_t offset, std::uint64_t at, std::uint64_t count, weftio_u32 flags = 0) const
    {
        return weftio_dev_file_read(handle(), one->key(), offset, memory->buffer(), at, count, flags);
    }
    std::int32_t write(std::uint64_t offset, std::uint64_t at, std::uint64_t count, weftio_u32 flags = 0) const
    {
        return weftio_dev_file_write(handle(), one->key(), offset, memory->buffer(), at, count, flags);
    }
    /// Commits, and waits until all entries are done.
    std::int32_t done() const { return weftio_dev_file_commit_wait(handle(), 0); }
    /// The result word of an entry. @pre the entry is done
    std::int64_t result(weftio_u32 position) const
    {
        weftio_s64 bytes = INT64_MIN;
        EXPECT_NE(weftio_dev_file_result(handle(), position, &bytes), WEFTIO_DEV_NOT_FOUND);
        return bytes;
    }
    /// Waits until the completion names the entry; the completion of an earlier failure may be there before.
    bool has_result(weftio_u32 position) const
    {
        return eventually([&] {
            weftio_s64 bytes = 0;
            return weftio_dev_file_result(handle(), position, &bytes) != WEFTIO_DEV_NOT_FOUND;
        });
    }
    void expect_all_counted() const
    {
        // The failure has been reported, but the engine may still be counting the entries that it flushes.
        EXPECT_TRUE(eventually([&] {
            const file_queue_counters now = queue->counters();
            return now.enqueued == now.read + now.written + now.synced + now.skipped + now.failed + now.flushed;
        }));
    }
    /// Texts of the failures that were reported to the host.
    std::vector<std::string> failures()
    {
        std::vector<std::string> texts;
        progress_engine progress;
        progress.attach(
            *queue, {.on_sent = {}, .on_error = [&](const send_failure& failure) { texts.push_back(failure.text); }});
        progress.progress();
        return texts;
    }

 private:
    const std::unique_ptr<file_engine> made_ = make_engine();

 protected:
    const scratch_file scratch;
    const std::vector<std::byte> content = pattern(bytes, 3);
    device cpu = device::open("cpu");
    std::unique_ptr<file> one;
    std::unique_ptr<file_queue> queue;
    std::unique_ptr<file_bytes> memory;
};

} // namespace weftio::test
