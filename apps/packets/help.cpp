#include "options.hpp"

namespace weftio::packets {

std::string_view help_text() noexcept
{
    return R"(Usage: weftio-packets -n PORT --address A/LENGTH [options]
Kernels answer ARP, neighbor discovery, ping, UDP, TCP and HTTP on a port.
  -n, --port SPEC         tap:NAME, iface:NAME, wire:NAME, a PCI address, DPDK devargs
      --address A/LENGTH  IPv4 or IPv6 address of the port; up to 15, each with --address
      --peer A            tap: gives the kernel's side this address and sets it up
  -g, --device DEVICE     where the kernels run: cpu, opencl, opencl:N, cuda:N [cpu]
  -q, --queues N          kernels, each with its own queues, 1 to 16 [1]
      --http PORT         TCP port of the HTTP server; 0: none [80]
      --root FOLDER       also serves the files of FOLDER
      --connections N     maximum TCP connections at a time [65536]
      --echo PORT         echoes UDP datagrams to PORT
      --ping-report       prints each ping, with the time since the previous one
      --busy              kernels never sleep: shortest answer time, one core each
      --interval S        seconds between a kernel's reports [1]
      --seconds S         ends after S seconds [at Ctrl-C]
      --json FILE         writes the summary as JSON; -: to standard output
      --quiet             no start line, no table, no summary
      --log LEVEL         the library's log on stderr: error, warning, info, debug
  -h, --help  -V, --version   more: man weftio-packets
Exit: 0 success, 1 usage, 2 the port or a kernel failed
)";
}

} // namespace weftio::packets
