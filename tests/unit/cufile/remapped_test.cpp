// Registered memory that was unmapped, or emptied, without a call of cuFile: what is mapped there now gets the bytes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "library.hpp"
#include "patience.hpp"
#include "unit/files/refused_call.hpp"
#include "unit/files/scratch_file.hpp"

namespace weftio::test {

namespace {

constexpr std::size_t piece_bytes = 4096;
constexpr unsigned piece_count = 32;
constexpr std::size_t all_bytes = piece_bytes * piece_count;

void* map(void* where, int flags = MAP_PRIVATE | MAP_ANONYMOUS)
{
    return mmap(where, all_bytes, PROT_READ | PROT_WRITE, flags | (where ? MAP_FIXED : 0), -1, 0);
}

/// KiB that io_uring has pinned of the process.
unsigned long pinned_kib()
{
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (unsigned long kib = 0; word == "VmPin:" && status >> kib)
            return kib;
    return 0;
}

/// Registered memory of a file that was opened with O_DIRECT.
class remapped {
 public:
    explicit remapped(int flags = MAP_PRIVATE | MAP_ANONYMOUS) : memory(static_cast<std::byte*>(map(nullptr, flags)))
    {
        EXPECT_EQ(pwrite(file.descriptor(), content.data(), all_bytes, 0), static_cast<ssize_t>(all_bytes));
        EXPECT_EQ(fsync(file.descriptor()), 0);
        EXPECT_EQ(cufile().BatchIOSetUp(&batch, piece_count).err, CU_FILE_SUCCESS);
        EXPECT_EQ(cufile().BufRegister(memory, all_bytes, 0).err, CU_FILE_SUCCESS);
    }
    remapped(const remapped&) = delete;
    remapped& operator=(const remapped&) = delete;
    ~remapped()
    {
        cufile().BatchIODestroy(batch);
        cufile().BufDeregister(memory);
        munmap(memory, all_bytes);
        close(direct);
    }

    bool has_direct() const { return direct >= 0; }
    /// All piece_count, one by one. @return how many were transferred as a whole
    unsigned transfer(CUfileOpcode_t opcode)
    {
        std::vector<CUfileIOParams_t> all(piece_count);
        for (unsigned each = 0; each < piece_count; ++each) {
            const auto at = static_cast<off_t>(each * piece_bytes);
            all[each].mode = CUFILE_BATCH;
            all[each].u.batch = {memory, at, at, piece_bytes};
            all[each].fh = registered.handle;
            all[each].opcode = opcode;
        }
        unsigned count = piece_count, whole = 0;
        EXPECT_EQ(cufile().BatchIOSubmit(batch, piece_count, all.data(), 0).err, CU_FILE_SUCCESS);
        std::vector<CUfileIOEvents_t> events(piece_count);
        EXPECT_EQ(cufile().BatchIOGetStatus(batch, piece_count, &count, events.data(), nullptr).err, CU_FILE_SUCCESS);
        for (const CUfileIOEvents_t& each : events)
            whole += each.ret == piece_bytes ? 1 : 0;
        return whole;
    }
    /// Until io_uring pins memory that it pins at all.
    void warm_up()
    {
        for (unsigned each = 0; each < 3; ++each)
            EXPECT_EQ(transfer(CUFILE_READ), piece_count);
    }
    bool has_content() const { return std::memcmp(memory, content.data(), all_bytes) == 0; }

    const open_driver driver;
    const scratch_file file;
    const int direct = open(file.path().c_str(), O_RDWR | O_CLOEXEC | O_DIRECT);
    const registered_file registered{direct};
    const std::vector<std::byte> content = pattern(all_bytes, 5);
    std::byte* const memory;
    CUfileBatchHandle_t batch = nullptr;
};

struct mapping_change {
    const char* name;
    int flags;
    void (*make)(std::byte*);
};

class CufileRemapped : public testing::TestWithParam<mapping_change> {};

TEST_P(CufileRemapped, GetsTheBytesThatAreRead)
{
    remapped of(GetParam().flags);
    if (!of.has_direct())
        GTEST_SKIP() << "no O_DIRECT in /tmp";
    for (unsigned round = 0; round < 4; ++round) {
        of.warm_up();
        ASSERT_TRUE(of.has_content());
        GetParam().make(of.memory);
        ASSERT_FALSE(of.has_content());
        EXPECT_EQ(of.transfer(CUFILE_READ), piece_count);
        EXPECT_TRUE(of.has_content()) << "round " << round;
    }
}

TEST_P(CufileRemapped, IsWhatIsWritten)
{
    remapped of(GetParam().flags);
    if (!of.has_direct())
        GTEST_SKIP() << "no O_DIRECT in /tmp";
    of.warm_up();
    GetParam().make(of.memory);
    const auto others = pattern(all_bytes, 11);
    std::memcpy(of.memory, others.data(), all_bytes);
    EXPECT_EQ(of.transfer(CUFILE_WRITE), piece_count);
    std::vector<std::byte> written(all_bytes);
    ASSERT_EQ(pread(of.file.descriptor(), written.data(), all_bytes, 0), static_cast<ssize_t>(all_bytes));
    EXPECT_EQ(written, others);
}

constexpr int own = MAP_PRIVATE | MAP_ANONYMOUS, shared = MAP_SHARED | MAP_ANONYMOUS;
const mapping_change mapping_changes[] = {
    {"Unmapped", own, [](std::byte* at) { munmap(at, all_bytes), map(at); }},
    {"MappedOver", own, [](std::byte* at) { map(at); }},
    {"InItsMiddle", own, [](std::byte* at) { munmap(at + all_bytes / 2, piece_bytes), map(at); }},
    {"MadviseDontneed", own, [](std::byte* at) { madvise(at, all_bytes, MADV_DONTNEED); }},
    {"MovedTo", own,
     [](std::byte* at) { mremap(map(nullptr), all_bytes, all_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at); }},
    {"MovedAway", own,
     [](std::byte* at) {
         munmap(mremap(at, all_bytes, all_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, map(nullptr)), all_bytes), map(at);
     }},
    {"BySyscall", own, [](std::byte* at) { syscall(SYS_munmap, at, all_bytes), map(at); }},
    {"SharedUnmapped", shared, [](std::byte* at) { munmap(at, all_bytes), map(at, shared); }},
    {"SharedRemoved", shared, [](std::byte* at) { madvise(at, all_bytes, MADV_REMOVE); }},
};
INSTANTIATE_TEST_SUITE_P(Rows, CufileRemapped, testing::ValuesIn(mapping_changes),
                         [](const auto& row) { return row.param.name; });

TEST(CufileUnmapped, ReadsFailAsPreadDoes)
{
    remapped of;
    if (!of.has_direct())
        GTEST_SKIP() << "no O_DIRECT in /tmp";
    of.warm_up();
    ASSERT_EQ(munmap(of.memory, all_bytes), 0);
    EXPECT_EQ(of.transfer(CUFILE_READ), 0U);
    map(of.memory);
    EXPECT_EQ(of.transfer(CUFILE_READ), piece_count);
    EXPECT_TRUE(of.has_content());
}

TEST(CufileUnmapped, InAThreadWhileAnotherReads)
{
    remapped of;
    if (!of.has_direct())
        GTEST_SKIP() << "no O_DIRECT in /tmp";
    std::atomic<bool> stop = false;
    std::thread reads([&] {
        while (!stop)
            of.warm_up();
    });
    for (unsigned each = 0; each < 300; ++each)
        map(of.memory);
    stop = true;
    reads.join();
    map(of.memory);
    EXPECT_EQ(of.transfer(CUFILE_READ), piece_count);
    EXPECT_TRUE(of.has_content());
}

TEST(CufileUnmapped, EachOfFourThreadsGetsItsBytes)
{
    std::atomic<unsigned> wrong = 0;
    const auto read_and_map = [&](unsigned seed) {
        remapped of;
        std::minstd_rand random(seed);
        for (unsigned each = 0; each < 200 && of.has_direct(); ++each) {
            std::byte* const page = of.memory + random() % piece_count * piece_bytes;
            switch (random() % 4) {
                case 0: map(of.memory); break;
                case 1: madvise(page, piece_bytes, MADV_DONTNEED); break;
                case 2: munmap(page, piece_bytes), map(of.memory); break;
                default: break;
            }
            wrong += of.transfer(CUFILE_READ) != piece_count || !of.has_content() ? 1 : 0;
            std::memset(of.memory, 0xee, all_bytes);
        }
    };
    std::vector<std::thread> threads;
    for (unsigned seed = 1; seed <= 4; ++seed)
        threads.emplace_back(read_and_map, seed);
    for (std::thread& each : threads)
        each.join();
    EXPECT_EQ(wrong, 0U);
}

TEST(CufileUnmapped, IsPinnedAgain)
{
    const auto descriptor = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */));
    if (descriptor < 0)
        GTEST_SKIP() << "userfaultfd is refused here";
    close(descriptor);
    remapped of;
    if (!of.has_direct())
        GTEST_SKIP() << "no O_DIRECT in /tmp";
    ASSERT_TRUE(eventually([] { return pinned_kib() == 0; })) << "by rings of other tests";
    for (unsigned round = 0; round < 3; ++round) {
        of.warm_up();
        EXPECT_EQ(pinned_kib(), all_bytes / 1024);
        munmap(of.memory, all_bytes);
        EXPECT_TRUE(eventually([] { return pinned_kib() == 0; })) << "without another call of the library";
        map(of.memory);
    }
}

TEST(CufileUnmapped, AChildThatUnmapsItsCopyChangesNothing)
{
    remapped of;
    if (!of.has_direct())
        GTEST_SKIP() << "no O_DIRECT in /tmp";
    of.warm_up();
    const pid_t child = fork();
    if (child == 0)
        _exit(munmap(of.memory, all_bytes) == 0 ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    std::memset(of.memory, 0xee, all_bytes);
    EXPECT_EQ(of.transfer(CUFILE_READ), piece_count);
    EXPECT_TRUE(of.has_content());
}

/// As in most containers.
TEST(CufileUnmapped, NothingIsPinnedWhereUserfaultIsRefused)
{
    remapped of;
    if (!of.has_direct())
        GTEST_SKIP() << "no O_DIRECT in /tmp";
    ASSERT_TRUE(eventually([] { return pinned_kib() == 0; })) << "by rings of other tests";
    where_refused(SYS_userfaultfd, EPERM, [&] {
        of.warm_up();
        EXPECT_EQ(pinned_kib(), 0U);
        map(of.memory);
        EXPECT_EQ(of.transfer(CUFILE_READ), piece_count);
        EXPECT_TRUE(of.has_content());
    });
}

} // namespace

} // namespace weftio::test
