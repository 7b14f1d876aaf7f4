#!/usr/bin/env bash
# Programs of others under weftio-run, as they are installed: ibv_devinfo, both pingpongs with their check of data, and ib_write_bw
# between two processes. As nobody, where there is no /dev/infiniband, no network but loopback, and an empty /dev/shm and /tmp.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/below_run.bash"
build=$(realpath "$1") script=$(realpath "$0")
needs_weftio_run "programs under weftio-run"
for program in ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ib_write_bw ib_send_bw; do
    command -v $program >/dev/null || skip "programs under weftio-run: no $program: install ibverbs-utils and perftest"
done

# In namespaces of its own, first as their root, then as nobody. Where the system allows none, the script runs as it is.
case ${2:-} in
'')
    as=(unshare --mount --net --ipc)
    [ "$(id -u)" = 0 ] || as+=(--user --map-root-user)
    if "${as[@]}" mount -t tmpfs none /tmp 2>/dev/null; then
        exec "${as[@]}" bash "$script" "$build" root
    fi
    echo "not checked: what is left in /dev/shm and /tmp (no namespaces here)"
    ;;
root)
    ip link set lo up || skip "programs under weftio-run: no loopback: install iproute2"
    # The build and this script stay in sight, also where the checkout is below one of the folders that are empty here.
    mount -t tmpfs -o mode=755 none /mnt && mkdir /mnt/build /mnt/tests && mount --rbind "$build" /mnt/build &&
        mount --rbind "$(dirname "$script")/.." /mnt/tests && cd / || exit 1
    build=/mnt/build run=/mnt/build/apps/weftio-run script=/mnt/tests/scripts/run_programs.sh
    for folder in /tmp /dev/shm; do
        mount -t tmpfs -o mode=1777 none $folder || exit 1
    done
    for folder in /dev/infiniband /sys/class/infiniband*; do
        [ ! -d "$folder" ] || mount -t tmpfs -o mode=000 none "$folder" || exit 1
    done
    cd /tmp || exit 1
    if [ "$(awk '{ print $3 }' /proc/self/uid_map)" = 1 ]; then # no other user is here, and EAL takes this one for root
        mount -t tmpfs none /run || exit 1
        exec bash "$script" "$build" nobody
    fi
    setpriv --reuid=nobody --clear-groups test -x "$run" || exec bash "$script" "$build" nobody
    exec setpriv --reuid=nobody --regid=nogroup --clear-groups --no-new-privs env HOME=/tmp bash "$script" "$build" nobody
    ;;
nobody) ;;
esac

wire=programs-$$
weftio() { "$run" --wire "$wire" -- "$@"; }

work=$(mktemp -d)
trap 'end_all; rm -rf "$work"' EXIT
cd "$work" || exit 1
bounded weftio ibv_devinfo -v >info 2>words </dev/null
check "ibv_devinfo: exit status" 0 $?
check "ibv_devinfo: no other words" "" "$(cat words)"
guid=$(awk '/node_guid/ { print $2 }' info)
IFS=: read -r -a word <<<"$guid"
last=$((16#${word[3]}))
check "the GUID is of a MAC that is locally administered" ff:fe "${word[1]#??}:${word[2]%??}"
ip=198.18.$((last >> 8)).$(((last & 255) % 254 + 1))
gid=fe80::$(for each in "${word[@]}"; do printf '%x ' $((16#$each)); done | sed 's/ $//; s/ /:/g')
cat >expected <<END_OF_FIELDS
hca_id: mlx5_0
transport: InfiniBand (0)
fw_ver: 28.39.1002
node_guid: $guid
sys_image_guid: $guid
vendor_id: 0x02c9
vendor_part_id: 4129
hw_ver: 0x0
board_id: WFT0000000001
phys_port_cnt: 1
max_mr_size: 0xffffffffffffffff
page_size_cap: 0xfffff000
max_qp: 16384
max_qp_wr: 32768
device_cap_flags: 0x01221882
BAD_PKEY_CNTR
CURR_QP_STATE_MOD
SYS_IMAGE_GUID
RC_RNR_NAK_GEN
MEM_WINDOW
MEM_MGT_EXTENSIONS
MEM_WINDOW_TYPE_2B
max_sge: 30
max_sge_rd: 30
max_cq: 65536
max_cqe: 4194303
max_mr: 16777216
max_pd: 16777216
max_qp_rd_atom: 16
max_ee_rd_atom: 0
max_res_rd_atom: 262144
max_qp_init_rd_atom: 16
max_ee_init_rd_atom: 0
atomic_cap: ATOMIC_HCA (1)
max_ee: 0
max_rdd: 0
max_mw: 16777216
max_raw_ipv6_qp: 0
max_raw_ethy_qp: 0
max_mcast_grp: 65536
max_mcast_qp_attach: 240
max_total_mcast_qp_attach: 15728640
max_ah: 16777216
max_fmr: 0
max_srq: 16384
max_srq_wr: 32767
max_srq_sge: 31
max_pkeys: 1
local_ca_ack_delay: 16
general_odp_caps:
rc_odp_caps:
NO SUPPORT
uc_odp_caps:
NO SUPPORT
ud_odp_caps:
NO SUPPORT
xrc_odp_caps:
NO SUPPORT
completion_timestamp_mask not supported
core clock not supported
device_cap_flags_ex: 0x1221882
tso_caps:
max_tso: 0
rss_caps:
max_rwq_indirection_tables: 0
max_rwq_indirection_table_size: 0
rx_hash_function: 0x0
rx_hash_fields_mask: 0x0
max_wq_type_rq: 0
packet_pacing_caps:
qp_rate_limit_min: 0kbps
qp_rate_limit_max: 0kbps
tag matching not supported
num_comp_vectors: 1
port: 1
state: PORT_ACTIVE (4)
max_mtu: 4096 (5)
active_mtu: 4096 (5)
sm_lid: 0
port_lid: 0
port_lmc: 0x00
link_layer: Ethernet
max_msg_sz: 0x80000000
port_cap_flags: 0x04000000
port_cap_flags2: 0x0000
max_vl_num: invalid value (0)
bad_pkey_cntr: 0x0
qkey_viol_cntr: 0x0
sm_sl: 0
pkey_tbl_len: 1
gid_tbl_len: 16
subnet_timeout: 0
init_type_reply: 0
active_width: 4X (2)
active_speed: 25.0 Gbps (32)
phys_state: LINK_UP (5)
GID[  0]: ::ffff:$ip, RoCE v2
GID[  1]: $gid, RoCE v2
GID[  2]: ::ffff:$ip, RoCE v2
GID[  3]: ::ffff:$ip, RoCE v2
END_OF_FIELDS
tr -s ' \t' ' ' <info | sed 's/^ *//; s/ *$//' | grep . >said
case $(dpkg-query -W -f='${Version}' ibverbs-utils 2>/dev/null) in
44.*) check "ibv_devinfo: every field" "$(tr -s ' ' <expected)" "$(cat said)" ;;
*) check "ibv_devinfo: every field that version 44 has" "" "$(tr -s ' ' <expected | grep -vxFf said)" ;;
esac

check "three devices: no other words" "$(printf 'mlx5_%d ' 0 1 2)" \
    "$("$run" --wire "$wire" --devices 3 -- ibv_devinfo -l 2>&1 | tail -n +2 | tr -s '\n\t' ' ' | sed 's/^ *//; s/ *$/ /')"

listens() { awk -v port=":$(printf %04X "$1")" '$2 ~ port "$" && $4 == "0A" { found = 1 } END { exit !found }' /proc/net/tcp /proc/net/tcp6; }
tcp_port=18515

# two WHAT PROGRAM...: its server and its client; their words are in server_words and client_words.
two() {
    local what=$1
    shift
    tcp_port=$((tcp_port + 1))
    "$run" --wire "$wire" -- "$@" -p $tcp_port >server_words 2>&1 </dev/null &
    server=$!
    eventually_by $server listens $tcp_port
    bounded weftio "$@" -p $tcp_port localhost >client_words 2>&1 </dev/null
    check "$what: the client's exit status" 0 $? || cat client_words
    wait_for_end $server "the end of the server of $what"
    check "$what: the server's exit status" 0 $? || cat server_words
}

for kind in rc uc ud; do
    two "ibv_${kind}_pingpong" ibv_${kind}_pingpong -g 0 -c -n 300
    for end in client server; do
        # With -c, a difference in the data is a line "invalid data in page N".
        check "ibv_${kind}_pingpong: the $end's words" \
            "address: LID address: LID bytes in iters in " \
            "$(sed -E 's/^ *(local|remote) +address: *LID .*/address: LID/; s/^(2457600|614400) bytes in .*/bytes in/; s/^300 iters in .*/iters in/' ${end}_words | tr '\n' ' ')"
    done
done

check_has "an engine that cannot start says why" "error: weftio: port nothing: " "$("$run" --port nothing -- ibv_devinfo 2>&1)"

two "ib_send_bw with datagrams" ib_send_bw -F -n 500 -c UD -x 3 # the GID index that guides name
for end in client server; do
    check "ib_send_bw with datagrams: the $end's result" "4096 500" "$(awk '/^ 4096/ && $4 > 0 { print $1, $2 }' ${end}_words)"
done

two ib_write_bw ib_write_bw -F -n 500
for end in client server; do
    check "ib_write_bw: the $end's result" "65536 500" "$(awk '/^ 65536/ && $4 > 0 { print $1, $2 }' ${end}_words)"
done
cd / && rm -rf "$work"
if [ "${2:-}" = nobody ]; then
    check "there is no device of the system's" "" "$(ls -A /dev/infiniband /sys/class/infiniband* 2>/dev/null)"
    rmdir /tmp/dpdk 2>/dev/null # EAL's, which is empty
    check "nothing is left in /dev/shm and /tmp" "" "$(find /dev/shm /tmp -mindepth 1)"
else
    check "nothing is left of the wire" "" "$(ls /dev/shm | grep -F "$wire")"
fi
finish
