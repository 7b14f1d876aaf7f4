#include "options.hpp"

namespace weftio::replay {

std::string_view help_text() noexcept
{
    return R"(Usage: weftio-replay [options] FILE... PORT      sends captures as they happened
       weftio-replay --check FILE...             shows what they contain
FILE   pcap or pcapng, also compressed by gzip, zstd, xz or bzip2; -: stdin
PORT   iface:NAME  tap:NAME  pcap:tx=FILE  null  a PCI address  or DPDK devargs
Files:    --merge             merge all files by time, instead of file by file
      -K, --preload-pcap      read all files before the first frame is sent
          --strict            send nothing if a file is damaged
Timing: -x, --multiplier N    N times the captured speed
      -p, --pps N  -M, --mbps N    frames or megabits per second
      -t, --topspeed          as fast as the port accepts frames
          --start-at TIME     1700000000.5, 2026-11-21T09:30:00Z or +SECONDS
          --max-gap TIME      shorten longer gaps to 2, 1.5s, 20ms, 100us, ...
Amount: -l, --loop N          N times; 0: endless
      -L, --limit N           at most N frames
          --duration TIME     frames scheduled within TIME of the start
          --filter EXPR       frames that match (man pcap-filter): "udp port 53"
Edits:    --dst-mac, --src-mac MAC  --vlan-push ID[:PRIORITY]  --vlan-pop
          --map OLD/BITS=NEW/BITS         IPv4 or IPv6, repeatable
          --port-map OLD=NEW  --ttl N|+N|-N  --dscp N
          --unique-ip         different addresses in every loop
          --fix-checksums     IPv4, TCP, UDP, ICMP, ICMPv6
          --mtu-trunc, --mtu-skip    truncate or skip frames over the MTU
Report:   --stats SECONDS     a progress line every SECONDS
      -q, --quiet             no progress, no table
          --json FILE         all results as JSON (-: standard output)
          --plot FILE.svg     schedule error over time
          --late-after TIME   error from which a frame counts as late [50us]
          --log LEVEL         the library's log: debug, info, warning, error
Where:-i PORT                 the port, instead of the last argument
      -I, --port2 PORT --split client|server|port|cidr=NET/BITS  two ports
      -g, --device DEVICE     kernel on cpu, opencl, opencl:N, cuda:N [cpu]
          --lanes N  --mtu BYTES  --core N  --busy  --realtime[=PRIORITY]
      -h, --help  -V, --version   more: man weftio-replay
Exit: 0 success, 1 usage, 2 damaged file, 3 frames not sent, 4 port or device
)";
}

} // namespace weftio::replay
