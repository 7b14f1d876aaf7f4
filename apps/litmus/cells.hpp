// The rows of the table: who writes data and flag, where they lie, who reads them, and what is done in between.
#pragma once

#include <string>
#include <vector>

namespace weftio::litmus {

enum class writer {
    write,
    write_then_atomic,
    write_with_immediate,
    write_second_flag,    ///< data by the one NIC, flag by the other
    copy_engine,          ///< of a GPU: data and flag
    copy_engine_nic_flag, ///< data by the copy engine, flag by the NIC
    cpu_stores,
};
enum class flag_place { same_region, other_region, host_memory, completion };
enum class flush { none, read_same_pair, read_other_pair, read_second, driver, cpu_load };
enum class place { host, gpu };
enum class reader { cpu, gpu, peer_gpu };

const char* to_string(writer) noexcept;
const char* to_string(flag_place) noexcept;
const char* to_string(flush) noexcept;

struct cell {
    writer by = writer::write;
    flag_place flag = flag_place::same_region;
    flush how = flush::none;
    bool relaxed = false;      ///< relaxed ordering of PCIe
    place where = place::host; ///< of the data, and of a flag that is not elsewhere
    reader seen_by = reader::cpu;
    bool vmm = false; ///< with data in the GPU: its memory is mapped (cuMemCreate)

    /// "WRITE / same region / none / strict / data in host / read by CPU"
    std::string words() const;
    const char* memory_words() const noexcept;
    const char* reader_words() const noexcept;
    bool needs_gpu() const { return where == place::gpu || seen_by != reader::cpu; }
    bool needs_second_nic() const { return by == writer::write_second_flag; }
    bool flag_in_gpu() const
    {
        return where == place::gpu && (flag == flag_place::same_region || flag == flag_place::other_region);
    }
    /// The reader has something done between flag and data.
    bool flushed_by_reader() const { return how != flush::none && how != flush::read_same_pair; }
    /// Why there cannot be such a row, as a sentence. Empty: there can.
    std::string why_never() const;
};

/// How memory of a GPU is allocated: cuMemAlloc(), cuMemCreate().
struct gpu_memories {
    bool alloc = true, vmm = false;
};

/// All rows, also those that cannot be.
std::vector<cell> all_cells(gpu_memories wanted);

} // namespace weftio::litmus
