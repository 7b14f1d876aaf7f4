#include "options.hpp"

namespace weftio::replay {

std::string_view help_text() noexcept
{
    return R"(Usage: weftio-replay [options] FILE... PORT      sends captures as they happened
       weftio-replay --check FILE...             says what they hold
FILE   pcap or pcapng, also in gzip, zstd, xz or bzip2; - is standard input
PORT   iface:NAME  tap:NAME  pcap:tx=FILE  null  a PCI address  or DPDK devargs
Files:    --merge             oldest frame of all files first, not file by file
      -K, --preload-pcap      read everything before the first frame goes
          --strict            send nothing if a file is damaged
Timing: -x, --multiplier N    N times as fast as captured
      -p, --pps N  -M, --mbps N    frames or million bits a second
      -t, --topspeed          as fast as the port takes them
          --start-at TIME     1700000000.5, 2026-11-21T09:30:00Z or +SECONDS
          --max-gap TIME      cut longer gaps to 2, 1.5s, 20ms, 100us, ...
Amount: -l, --loop N          N times, 0 for ever
      -L, --limit N           at most N frames
          --duration TIME     frames planned within TIME of the start
          --filter EXPR       what man pcap-filter lets through: "udp port 53"
Edits:    --dst-mac, --src-mac MAC  --vlan-push ID[:PRIORITY]  --vlan-pop
          --map OLD/BITS=NEW/BITS         IPv4 or IPv6, repeatable
          --port-map OLD=NEW  --ttl N|+N|-N  --dscp N
          --unique-ip         other addresses in every loop
          --fix-checksums     IPv4, TCP, UDP, ICMP, ICMPv6
          --mtu-trunc, --mtu-skip    cut frames over the MTU, or leave out
Report:   --stats SECONDS     a line every so often
      -q, --quiet             no progress, no table
          --json FILE         everything, for programs (- standard output)
          --plot FILE.svg     schedule error over time
          --late-after TIME   what counts as late [50us]
          --log LEVEL         the library's words: debug, info, warning, error
Where:-i PORT                 instead of the last word
      -I, --port2 PORT --split client|server|port|cidr=NET/BITS  two ports
      -g, --device DEVICE     kernel on cpu, opencl, opencl:N, cuda:N [cpu]
          --lanes N  --mtu BYTES  --core N  --busy  --realtime[=PRIORITY]
      -h, --help  -V, --version   more: man weftio-replay
Exit: 0 as planned, 1 usage, 2 damaged file, 3 frames not sent, 4 port or device
)";
}

} // namespace weftio::replay
