#include "options.hpp"

namespace weftio::run {

std::string_view help_text() noexcept
{
    return R"(Usage: weftio-run [options] [--] PROGRAM [ARGUMENT]...
Starts a program that sees RDMA devices, mlx5_0 and on, which Weftio stands in for.
      --wire NAME       the wire in memory that its ports join; all programs of a user that
                        name the same wire reach each other [default]
      --port SPEC       a port of this kind, in place of the wire: iface:v0
      --address A       IPv4 or IPv6 address of the first device [one of the wire's]
      --devices N       how many devices, 1 to 8 [1]
      --dump FILE       writes all packets to FILE, a pcapng capture
      --loss SHARE[,SEED]   the wire loses this share of what the program sends: 0.01,7
      --show PID        instead: what that process has made, and what its queue pairs wait for
  -h, --help  -V, --version   more: man weftio-run
Exit: the program's, 125 usage, or Weftio's libraries are missing, 126 the program cannot be
started with devices, 127 there is no such program
)";
}

} // namespace weftio::run
