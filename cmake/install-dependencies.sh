#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that are missing, and calls apt only when some are.
#
#   cmake/install-dependencies.sh          what the library, the samples and `make demo` need
#   cmake/install-dependencies.sh test     what the tests, benchmarks and `make tidy` need as well
set -euo pipefail

# "a|b": either will do; the first that the distribution has is installed.
runtime=(
    cmake ninja-build g++ "pkg-config|pkgconf"
    libdpdk-dev libnuma-dev libibverbs-dev zlib1g-dev libzstd-dev liblzma-dev libbz2-dev libpcap-dev
    ocl-icd-opencl-dev opencl-headers pocl-opencl-icd
    libboost-context-dev libcli11-dev libfmt-dev liburing-dev nlohmann-json3-dev
)
test=(
    libgtest-dev libgmock-dev libbenchmark-dev
    apache2-utils nftables nmap tcpdump tshark iproute2 iputils-ping ethtool curl sip-tester tcpreplay pcapfix
    python3 python3-dpkt golang-github-google-gopacket-dev
    ibverbs-utils rdmacm-utils librdmacm-dev perftest libucx-dev openmpi-bin libopenmpi-dev
    meson ccache valgrind dpdk-dev fio ucx-utils gnuplot-nox g++-aarch64-linux-gnu universal-ctags
    "clang-14|clang" "libclang-rt-14-dev|libclang-rt-dev|libclang-common-14-dev" "clang-tidy-14|clang-tidy" "llvm-14|llvm"
    "clang-format-14|clang-format"
)

is_installed()
{
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

any_installed()
{
    local name
    for name in ${1//|/ }; do
        is_installed "$name" && return 0
    done
    return 1
}

# Prints the first of the alternatives that apt could install; fails when it knows none.
candidate_of()
{
    local name policy
    for name in ${1//|/ }; do
        policy=$(LC_ALL=C apt-cache policy "$name" 2>/dev/null)
        if [[ $policy =~ "  Candidate: "[^\(] ]]; then
            echo "$name"
            return 0
        fi
    done
    return 1
}

# Sets `names` to one package for each of `missing`; fails, with `wanted` at the one, when apt's lists lack it.
choose_names()
{
    local name
    names=()
    for wanted in "${missing[@]}"; do
        name=$(candidate_of "$wanted") || return 1
        names+=("$name")
    done
}

apt()
{
    local root=()
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null || {
            echo "weftio: missing packages: ${missing[*]}; install them as root, or install sudo" >&2
            exit 1
        }
        root=(sudo)
    fi
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 "$@" </dev/null
}

all=("${runtime[@]}")
[[ ${1:-} == test ]] && all+=("${test[@]}")

if ! command -v dpkg-query >/dev/null; then
    echo "weftio: not a Debian system: make sure that you have the like of: ${all[*]}" >&2
    exit 0
fi

missing=()
for package in "${all[@]}"; do
    any_installed "$package" || missing+=("$package")
done
[[ ${#missing[@]} == 0 ]] && exit 0

echo "weftio: installing ${missing[*]}"
if ! choose_names; then
    apt update
    choose_names || {
        echo "weftio: apt has no package ${wanted//|/ or }; enable main and universe in its sources" >&2
        exit 1
    }
fi
# Stale lists name files that the mirror no longer has: one update and one more try mend that.
apt install --no-install-recommends "${names[@]}" || {
    apt update
    apt install --no-install-recommends "${names[@]}"
}
