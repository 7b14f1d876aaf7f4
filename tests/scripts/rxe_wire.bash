# The wire between Linux's rxe in a guest and a port of ours. Sourced behind checks.bash.
#
#   make_rxe_wire NAMESPACE    a bridge, 192.0.2.1/24, of tap0 for the guest and w1, whose other end w0 is for the port; sets `in`, the
#                              command prefix of the namespace. Status 1: no namespace can be made

make_rxe_wire() {
    in=(ip netns exec "$1")
    ip netns add "$1" || return 1
    "${in[@]}" sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; ip link set lo up
        ip link add br0 type bridge mcast_snooping 0; ip tuntap add tap0 mode tap; ip link add w0 type veth peer name w1
        ip link set tap0 master br0; ip link set w1 master br0; ip address add 192.0.2.1/24 dev br0
        for each in br0 tap0 w0 w1; do ip link set $each up; done' || exit 1
}
