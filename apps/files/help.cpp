#include "options.hpp"

namespace weftio::files {

std::string_view help_text() noexcept
{
    return R"(Usage: weftio-files --check [options] [PATH...]    says what this machine's files can do
       weftio-files bench [options] [FILE]         measures, beside POSIX and copies, and beside fio
       weftio-files --stats PID [--json]           what a running program has read and written
Check:    --config FILE       a cufile.json [as WEFTIO_FILE_JSON or CUFILE_ENV_PATH_JSON name it]
          --topology FILE     PCIe trees and NVLinks, as PLATFORM prints them [this machine's]
          --root FOLDER       a recorded machine: a folder with proc and sys [/]
PATH   files or folders; without: every mount of drives, and network mounts
Bench:-w, --workers N         threads [4]
      -b, --size SIZE,...     bytes of an operation, one run each: 4k, 1m [1m]
      -s, --file-size SIZE    of the file [256m]
          --seconds N         of a run, over all its rounds [2]
          --rounds N          each way in turn, so many times [3]
          --no-fio            not beside fio, which is run where it is installed
          --plot FILE.svg     what each way moved over time
          --read  --write  --mixed    what to do [--read]
          --random            offsets in random order
          --direct            O_DIRECT
          --verify            compares what is read with what was written
          --way WAY           uring or posix only
      -g, --device DEVICE     whose memory: cpu, cuda:N [cpu]
FILE   is made if it is not there, and removed; a folder gets a file of its own
          --json              for programs, on standard output
      -h, --help  -V, --version   more: man weftio-files
Exit: 0 as asked, 1 usage or configuration, 2 an operation failed or wrong bytes, 3 no such program
)";
}

} // namespace weftio::files
