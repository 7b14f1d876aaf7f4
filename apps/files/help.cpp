#include "options.hpp"

namespace weftio::files {

std::string_view help_text() noexcept
{
    return R"(Usage: weftio-files --check [options] [PATH...]    shows how this machine can do file I/O
       weftio-files bench [options] [FILE]         measures, beside POSIX with copies, and fio
       weftio-files --stats PID [--json]           shows what a running program has read and written
Check:    --config FILE       a cufile.json [that of WEFTIO_FILE_JSON or CUFILE_ENV_PATH_JSON]
          --topology FILE     PCIe trees and NVLinks, in PLATFORM's format [this machine's]
          --root FOLDER       a recorded machine: a folder with proc and sys [/]
PATH   files or folders [all mounts of drives, and network mounts]
Bench:-w, --workers N         threads [4]
      -b, --size SIZE,...     bytes per operation, one run each: 4k, 1m [1m]
      -s, --file-size SIZE    size of the file [256m]; of an existing one, its first part [all]
          --seconds N         length of a run, over all rounds [2]
          --rounds N          how often all ways are run, in turn [3]
          --no-fio            do not run fio, even if it is installed
          --plot FILE.svg     plots what each way moved over time
          --read  --write  --mixed    operations to measure [--read]
          --random            offsets in random order
          --direct            O_DIRECT
          --verify            compares the data read with the data written
          --way WAY           only uring or posix
      -g, --device DEVICE     where the memory is: cpu, opencl, opencl:N, cuda:N [cpu]
FILE   is created if it does not exist, then removed; in a folder, a new file is used
          --json              JSON on standard output
      -h, --help  -V, --version   more: man weftio-files
Exit: 0 success, 1 usage or configuration, 2 an operation failed or wrong bytes, 3 no such program
)";
}

} // namespace weftio::files
