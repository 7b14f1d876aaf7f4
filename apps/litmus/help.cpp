#include "options.hpp"

namespace weftio::litmus {

std::string_view help_text() noexcept
{
    return R"(Usage: weftio-litmus [options]
Has an RDMA device write data and then a flag into memory of this machine or of a GPU, and counts how often who has
seen the flag does not see the data (a stale read). One row for each writer, flag, flush, ordering, memory and reader.
      -n, --trials N       pairs of data and flag of each row [1000000]
          --until N        a row ends after N stale reads [none: after all trials]
          --only TEXT,...  only rows that have each TEXT in their words: "WRITE,other region,strict"
          --list           prints the words of all rows
      -p, --pairs N        pairs in flight at once [1024]
      -b, --bytes N        of data in a pair, a multiple of 8 [256]
          --strict         only rows without relaxed ordering of PCIe
      -d, --device NAME    "mlx5_0", as ibv_devices lists them [the first]
      -i, --port N         of the device [1]
      -x, --gid-index N    as ibv_devinfo -v lists them [the first IPv4 address, else the first]
          --gpu N          a GPU (a number, or its address on PCI): rows with its memory, kernels and copies
          --peer-gpu N     a second GPU: rows whose kernels read the memory of the first
          --memory KIND,...    of the GPU: alloc (cuMemAlloc), vmm (cuMemCreate, for NICs) [alloc]
          --second NAME    a second device: rows where it writes the flags
          --json           JSON on standard output
      -h, --help  -V, --version   more: man weftio-litmus
Exit: 0 no stale read, 1 usage, 2 a row could not be run, 3 stale reads
)";
}

} // namespace weftio::litmus
