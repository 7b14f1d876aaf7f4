#include "options.hpp"

namespace weftio::run {

std::string_view help_text() noexcept
{
    return R"(Usage: weftio-run [options] [--] PROGRAM [ARGUMENT]...
Starts a program that sees emulated RDMA devices: mlx5_0 and up.
      --wire NAME       wire in memory that connects all programs of a user that name
                        it [default]
      --port SPEC       a port of this kind instead of the wire: iface:v0
      --address A       IPv4 or IPv6 address of the first device [one of the wire's]
      --devices N       number of devices, 1 to 8 [1]
      --dump FILE       writes all packets to FILE, a pcapng capture
      --loss SHARE[,SEED]   share of the program's frames that the wire loses: 0.01,7
      --stale report|fail|off   accesses to registered memory whose pages are gone:
                        told [report], refused, or neither
      --show PID        show the objects of a running program, and what its queue pairs wait for
  -h, --help  -V, --version   more: man weftio-run
Exit: the program's, 125 usage, or Weftio's libraries are missing, 126 the program cannot be
started with devices, 127 no such program
)";
}

} // namespace weftio::run
