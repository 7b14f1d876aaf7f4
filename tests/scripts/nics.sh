#!/usr/bin/env bash
# NICs that read and write memory by themselves: in a QEMU guest (no KVM) Debian's own kernel binds a virtio, an e1000e and a vmxnet3 NIC
# to vfio-pci behind an emulated IOMMU, or without one to uio_pci_generic, and programs of a bundle use it. A DMA to memory that the
# NIC was not told of is a fault that the kernel reports. No root needed, nor hugepages here: the guest has its own.
#
#   WEFTIO_LONG=1 tests/scripts/nics.sh BUILD_DIR [NIC[:39-bits|:no-iommu]...]
#
# The first run downloads some 100 MB of Debian packages (kernel, busybox, QEMU if it is not installed), and unpacks them in
# $WEFTIO_GUEST, or ~/.cache/weftio-guest.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1") cache=${WEFTIO_GUEST:-${XDG_CACHE_HOME:-$HOME/.cache}/weftio-guest}
cases=("${@:2}")
((${#cases[@]})) || cases=(virtio e1000e vmxnet3 virtio:39-bits virtio:no-iommu e1000e:no-iommu vmxnet3:no-iommu)
repository=$(realpath "$(dirname "$0")/../..")
programs='produce_send|simple_receive|send_wait_time|forward_bench|close_nic|weftio-replay'
[ -n "${WEFTIO_LONG:-}" ] || skip "NICs behind an IOMMU in a guest (takes minutes: WEFTIO_LONG=1)"
for program in samples/{produce_send,simple_receive,send_wait_time} bench/forward_bench tests/close_nic apps/weftio-replay; do
    [ -x "$build/$program" ] || skip "NICs in a guest: $program is not built"
done
for tool in tshark; do
    [ -n "$(command -v $tool)" ] || skip "NICs in a guest: $tool is not installed"
done

# unpack FOLDER PACKAGE...: Debian packages, unpacked there and never installed; the folder appears only when it is complete.
unpack() {
    local folder=$cache/$1 package
    shift
    [ ! -d "$folder" ] || return 0
    rm -rf "$folder.new" && mkdir -p "$folder.new/debs"
    (cd "$folder.new/debs" && apt-get -qq -o APT::Sandbox::User="$(id -un)" download "$@") || skip "NICs in a guest: no download of $*"
    for package in "$folder.new/debs"/*.deb; do dpkg -x "$package" "$folder.new"; done
    rm -rf "$folder.new/debs" && mv "$folder.new" "$folder"
}
mkdir -p "$cache"
unpack kernel "$(LC_ALL=C apt-cache depends linux-image-amd64 | awk '/Depends:/ {print $2; exit}')"
unpack guest busybox-static
qemu=(qemu-system-x86_64)
if [ -z "$(command -v qemu-system-x86_64)" ]; then
    unpack qemu $(LC_ALL=C apt-get -s --no-install-recommends install qemu-system-x86 | awk '$1 == "Inst" {print $2}')
    qemu=(env LD_LIBRARY_PATH="$cache/qemu/usr/lib/x86_64-linux-gnu:$cache/qemu/lib/x86_64-linux-gnu"
        "$cache/qemu/usr/bin/qemu-system-x86_64" -L "$cache/qemu/usr/share/qemu" -L "$cache/qemu/usr/share/seabios")
fi
busybox=$(echo "$cache"/guest/*bin/busybox) version=$(cd "$cache/kernel/lib/modules" && echo *)

work=$(mktemp -d)
mkfifo "$work/orders.in" "$work/orders.out"
cleanup() {
    end_all
    rm -rf "$work"
}
trap cleanup EXIT

# --- What the guest runs ------------------------------------------------------------------------------------------------

root=$work/root
mkdir -p "$root"/{bin,proc,sys,dev,lib64,lib/x86_64-linux-gnu,w,etc,tmp,var/run}
WEFTIO_BUNDLE_ONLY=$programs bash "$repository/cmake/bundle.sh" "$build" "$work/bundle.tar.gz" >/dev/null || skip "NICs in a guest: no bundle"
tar xzf "$work/bundle.tar.gz" -C "$root/w" --strip-components=1
cp "$repository/lib/src/dpdk/builtin.pcap" "$root/w/"
cp "$busybox" "$root/bin/busybox"
for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libresolv.so.2; do
    cp -L "/lib/x86_64-linux-gnu/$name" "$root/lib/x86_64-linux-gnu/"
done
cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
(cd "$cache/kernel" && cp -a --parents "lib/modules/$version"/kernel/drivers/{vfio,uio} "lib/modules/$version/kernel/virt/lib/irqbypass.ko" "$root")
"$busybox" depmod -b "$root" "$version"
cat >"$root/init" <<'END'
#!/bin/busybox sh
export PATH=/w/bin:/bin HOME=/ nic=0000:01:00.0 other=0000:02:00.0
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/hugepages; mount -t tmpfs shm /dev/shm; mount -t hugetlbfs none /dev/hugepages; ulimit -l unlimited
chmod 755 /w /w/bin /w/lib; driver=vfio-pci; modprobe vfio-pci; modprobe vfio_iommu_type1
if [ -z "$(ls /sys/kernel/iommu_groups)" ]; then
    driver=uio_pci_generic; modprobe uio_pci_generic
fi
for each in $nic $other; do
    echo $driver >/sys/bus/pci/devices/$each/driver_override; echo $each >/sys/bus/pci/drivers/$driver/bind
done
try() { echo "@ $*"; timeout -k 5 60 "$@" 2>&1; echo "@ exit $?"; }
# Without an IOMMU, and with hugepages hidden from the program, so that it has ordinary pages only.
if [ $driver = uio_pci_generic ]; then
    mount -t tmpfs none /sys/kernel/mm/hugepages
    try produce_send --count 3 -n $nic
    umount /sys/kernel/mm/hugepages
fi
try produce_send -n $nic --count 1000
try send_wait_time -n $nic -t 20000000
try weftio-replay -q -x 10 -i $nic /w/builtin.pcap
try weftio-replay -q -x 10 -i $nic -I $other --split client /w/builtin.pcap
if ! grep -q only-sending /proc/cmdline; then
    try simple_receive -n $nic --count 20 --seconds 30
    try forward_bench --port $nic --mode thread --packets 20 --report
    try close_nic $nic
    # These are unplugged while frames flow.
    try weftio-replay -q -p 500 --loop 0 --json /tmp/report -i $other /w/builtin.pcap
    grep -m 3 -E '"(planned|sent|not_sent)"' /tmp/report
    try simple_receive -n $nic
fi
dmesg | grep -E 'DMAR:.*(fault|Request)'
echo "@ end"
poweroff -f
END
chmod +x "$root/init"
(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$work/initramfs"

# --- One NIC --------------------------------------------------------------------------------------------------------------

# Datagrams for the guest: what is sent to QEMU's UDP port is a frame on the NIC's cable.
datagrams() {
    exec 3>"/dev/udp/127.0.0.1/$1"
    local number=100000
    while sleep 0.05; do # 60 bytes each: Ethernet, IPv4, UDP 2090, 18 bytes of which six are a number
        printf '%b' "\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x07\x08\0\x45\0\0\x2e\0\0\0\0\x40\x11\xf7\x66\xc0\xa8\x01\x07\xc0\xa8\x01\x01\x08\x2a\x08\x2a\0\x1a\0\x00$((number++))ghijklmnopqr" >&3
    done 2>/dev/null
}

# running PATTERN: the guest has begun a program whose line is so.
running() { grep -q "^@ $1" <(tr -d '\r' <"$work/console"); }
crossed() { stat -c %s "$work/wire2.pcap"; }
printed() { sed '1,/^@ simple_receive -n [^ ]*\r*$/d' "$work/console" | grep -c 'received UDP'; }

# unplug: takes both NICs away, each while frames flow.
unplug() {
    local before
    exec 4<>"$work/orders.in" 5<>"$work/orders.out"
    until [ -f "$work/console" ] && running 'weftio-replay.* --loop'; do sleep 0.2; done
    before=$(crossed)
    until (($(crossed) > before + 20000)); do sleep 0.1; done
    echo "device_del other" >&4
    until running 'simple_receive -n [^ ]*$'; do sleep 0.2; done
    until (($(printed) > 20)); do sleep 0.1; done
    echo "device_del nic" >&4
}

# boot NIC BITS: behind an IOMMU of so many bits, or without one. Runs the guest; its words go to $work/words, what crossed its cable to $work/wire.pcap.
boot() {
    local device=$1 port=$((20000 + RANDOM % 20000)) words='' iommu=()
    # One case has ordinary pages, where DPDK takes its time. Without an IOMMU they will not do. Nor do they for QEMU's e1000e, which
    # loses frames, without a word, that lie in two pages which are not neighbors in its own memory.
    [ "$1$2" = virtio48 ] || words=hugepages=400
    [ "$2" != 39 ] || words+=' only-sending'
    [ "$1" != virtio ] || device=virtio-net-pci,disable-legacy=on${2:+,iommu_platform=on,ats=on} # else it goes round the IOMMU
    [ -z "$2" ] || iommu=(-device "intel-iommu,caching-mode=on,device-iotlb=on,aw-bits=$2")
    rm -f "$work"/{console,wire.pcap,wire2.pcap}
    datagrams "$port" &
    sender=$!
    unplug &
    unplugger=$!
    timeout -k 5 400 "${qemu[@]}" -M q35 -accel tcg -cpu max -smp 2 -m 3072 -nodefaults -no-user-config -display none -no-reboot \
        -kernel "$cache"/kernel/boot/vmlinuz-* -initrd "$work/initramfs" -append "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check ${2:+intel_iommu=on} $words" \
        -serial file:"$work/console" "${iommu[@]}" \
        -chardev pipe,id=orders,path="$work/orders" -mon chardev=orders \
        -device pcie-root-port,id=slot1,chassis=1,addr=02.0 -device pcie-root-port,id=slot2,chassis=2,addr=03.0 \
        -netdev "dgram,id=cable,local.type=inet,local.host=127.0.0.1,local.port=$port,remote.type=inet,remote.host=127.0.0.1,remote.port=9" \
        -device "$device,netdev=cable,id=nic,bus=slot1,mac=52:54:00:00:00:01,romfile=" \
        -object filter-dump,id=dump,netdev=cable,file="$work/wire.pcap" \
        -netdev "dgram,id=cable2,local.type=inet,local.host=127.0.0.1,local.port=$((port + 1)),remote.type=inet,remote.host=127.0.0.1,remote.port=9" \
        -device "$device,netdev=cable2,id=other,bus=slot2,mac=52:54:00:00:00:02,romfile=" \
        -object filter-dump,id=dump2,netdev=cable2,file="$work/wire2.pcap" </dev/null 2>"$work/qemu"
    kill "$sender" "$unplugger" 2>/dev/null
    wait "$sender" "$unplugger" 2>/dev/null
    tr -d '\r' <"$work/console" | sed -n '/^@ /,$p' >"$work/words"
    [ -z "${KEEP:-}" ] || { mkdir -p "$KEEP"; cp "$work"/{words,console,wire.pcap,wire2.pcap,qemu} "$KEEP/"; }
    [ -s "$work/words" ] || tail -n 20 "$work/console" "$work/qemu"
}

# faults NIC: QEMU's vmxnet3 reads address 0 when its driver sets it up, before it has been told of any memory.
faults() { grep 'DMAR:.*fault addr' "$work/words" | if [ "$1" = vmxnet3 ]; then grep -v 'fault addr 0x0 '; else cat; fi; }
# words_of PATTERN: what the program whose line begins so said.
words_of() { sed -n "/^@ $1/,/^@ exit/p" "$work/words"; }
# said_sent PATTERN: the number of frames that it reports as sent.
said_sent() { words_of "$1" | sed -n 's/^sent \([0-9]*\),.*/\1/p'; }
# conserved PATTERN: whether what it received was delivered or dropped.
conserved() { words_of "$1" | awk -F '[ ,]+' '/^received/ {print ($2 > 0 && $2 == $4 + $6) ? "yes" : $0}'; }
# frames FILTER FIELD [FILE]: of the frames on the cable.
frames() { tshark -n -r "${3:-$work/wire.pcap}" -Y "$1" -T fields -e "$2" 2>/dev/null; }
# bytes FILE FILTER: of frames, those that a NIC pads left out.
bytes() { tshark -n -r "$1" -Y "frame.len > 60 && $2" -x 2>/dev/null | grep -E '^[0-9a-f]{4} '; }
# numbers: of the datagrams that came back.
numbers() { frames "$forwarded" udp.payload | cut -c 1-12 | sed 's/3\(.\)/\1/g'; }

produced='eth.src == 52:54:00:00:00:01 && udp.dstport == 2090' timed='eth.type == 0x88b5' received='eth.src == 02:00:00:00:00:07'
forwarded='eth.dst == 02:00:00:00:00:07'
datagrams_of_produce_send() {
    awk 'BEGIN {for (n = 0; n < 1000; ++n) {printf "%08x", n; for (at = 4; at < 64; ++at) printf "%02x", (n + at) % 256; print ""}}'
}
capture=$repository/lib/src/dpdk/builtin.pcap
"$build/apps/weftio-replay" -q -x 100 -i "pcap:tx=$work/half" -I "pcap:tx=$work/half2" --split client "$capture" || exit 1
half2=$(frames frame frame.number "$work/half2" | wc -l)

check_sending() {
    check_has "$1: every frame is said to be sent" "sent 1000, failed 0, flushed 0" "$(words_of 'produce_send -n')"
    check "$1: and crossed the cable once, intact and in order" "$(datagrams_of_produce_send)" "$(frames "$produced" udp.payload)"
    check "$1: timed frames cross the cable" "$(said_sent send_wait_time)" "$(frames "$timed" frame.number | wc -l)"
    check "$1: replayed captures cross the cable" "$(bytes "$capture" frame && bytes "$work/half" frame)" \
        "$(bytes "$work/wire.pcap" "!($produced) && !($timed) && !($received) && !($forwarded)")"
    check "$1: and what goes the other way crosses the other one" "$(bytes "$work/half2" frame)" \
        "$(bytes "$work/wire2.pcap" "frame.number <= $half2")"
}
check_receiving() {
    local came
    check "$1: datagrams arrive" 20 "$(words_of 'simple_receive.*--count' | grep -c 'Eth src 02:00:00:00:00:07 - Eth dst ff:ff:ff:ff:ff:ff - 60 bytes')"
    check "$1: what was received was delivered or dropped" yes "$(conserved 'simple_receive.*--count')"
    came=$(numbers)
    check "$1: datagrams are forwarded, none of them lost" "$(seq "$(head -n 1 <<<"$came")" "$(tail -n 1 <<<"$came")")" "$came"
    check_has "$1: as many as are said to be sent" "\"sent\":$(wc -l <<<"$came"),\"conserved\":true" "$(words_of forward_bench)"
}
check_closing() {
    check "$1: a port that is closed opens again, and nothing it received is lost" "yes yes" "$(conserved close_nic | paste -s -d ' ')"
    check "$1: a closed port's NIC writes nowhere" "0 0" "$(words_of close_nic | sed -n 's/.* hugepages, \([0-9]*\) written to/\1/p' | paste -s -d ' ')"
}
check_unplugging() {
    local planned sent not_sent crossed
    check_has "$1: who sends on a NIC that is unplugged is told" "the port is gone" "$(words_of 'weftio-replay.*--loop')"
    { read -r planned && read -r sent && read -r not_sent; } < <(sed -n 's/^ *"\(planned\|sent\|not_sent\)": \([0-9]*\),.*/\2/p' "$work/words")
    check "$1: no frame is unaccounted for" "$planned" $((sent + not_sent))
    crossed=$(($(frames frame frame.number "$work/wire2.pcap" | wc -l) - half2))
    # Without an IOMMU the NIC is gone before anybody knows, and with it what its driver has taken.
    if [ -n "$iommu" ]; then
        check "$1: those said to be sent crossed the cable ($sent, $crossed)" yes "$( ((sent <= crossed)) && echo yes)"
    else
        echo "not checked: $1: said to be sent $sent, crossed the cable $crossed"
    fi
    check_has "$1: who receives is told" "is unavailable" "$(words_of 'simple_receive -n [^ ]*$')"
    check "$1: and what was received was delivered or dropped" yes "$(conserved 'simple_receive -n [^ ]*$')"
}
for each in "${cases[@]}"; do
    nic=${each%%:*} iommu=48 statuses=(0 0 0 0 0 0 0 4 4)
    case $each in
    *:no-iommu) iommu='' statuses=(4 "${statuses[@]}") ;;
    *:39-bits) iommu=39 statuses=(0 0 0 0) ;; # cannot map the addresses that programs send from
    esac
    boot "$nic" "$iommu"
    check "$each: programs end well" "${statuses[*]}" "$(sed -n 's/^@ exit //p' "$work/words" | paste -s -d ' ')" || grep -v 'received UDP' "$work/words"
    check "$each: no access to memory that the NIC was not told of" "" "$(faults "$nic" | head -3)"
    [ -n "$iommu" ] || check_has "$each: ordinary pages are refused" "DPDK's memory, ordinary pages, has no known physical addresses" "$(words_of 'produce_send --count')"
    check_sending "$each"
    [ "$iommu" != 39 ] || continue
    check_receiving "$each"
    check_closing "$each"
    check_unplugging "$each"
done
finish
