#!/usr/bin/env bash
# Makes an archive that runs where nothing is installed: programs, the libraries they need, DPDK's drivers, and what is to be read:
# docs/, share/man/ and the licenses, ours and those of the libraries. With forward_bench, also what bench/versus compares it with:
# this machine's dpdk-testpmd, if there is one.
#
#   cmake/bundle.sh BUILD_DIR ARCHIVE.tar.gz
#   WEFTIO_BUNDLE_ONLY="weftio-gpu-test|doca_bench" cmake/bundle.sh BUILD_DIR ARCHIVE.tar.gz     these programs only
#
# On an error there is no archive, also none of an earlier call.
#
# Left out: glibc's own libraries and the GPU driver, which belong to the machine; and weftio-run, whose engine is loaded by programs of
# the machine, and so would find the machine's libraries. It runs wherever it is unpacked, below /tmp too.
set -Eeuo pipefail
fail() { echo "bundle.sh: $*; there is no archive" >&2; exit 1; }
trap 'fail "line $LINENO failed: $BASH_COMMAND"' ERR
[ $# = 2 ] || fail "it takes a build directory and the name of the archive, not $# arguments"
build=$1 archive=$2
rm -f "$archive"
source=$(dirname "$0")/..
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/weftio
mkdir -p "$root/bin" "$root/lib/dpdk-pmds"

folders=()
for folder in samples apps bench tests; do
    [ ! -d "$build/$folder" ] || folders+=("$build/$folder") # benches may not be built
done
# Programs look for libraries of the build first, as $ORIGIN/../lib; the copies below $stage do not find those.
looked_in=$(realpath -m "$build/lib")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
libraries_of() { LD_LIBRARY_PATH=$looked_in ldd "$@"; }
[ ${#folders[@]} = 0 ] || find "${folders[@]}" -maxdepth 1 -type f -perm -u+x ! -name '*.so*' ! -name weftio-run \
    -exec cp {} "$root/bin/" \;
[ -n "$(ls "$root/bin")" ] || fail "no programs in samples, apps, bench and tests of $build; build them first"
[ -f "$root/bin/gpu_test" ] && mv "$root/bin/gpu_test" "$root/bin/weftio-gpu-test"
[ -f "$root/bin/gpu_bench" ] && mv "$root/bin/gpu_bench" "$root/bin/weftio-gpu-bench"
[ -f "$root/bin/initiated_bench" ] && mv "$root/bin/initiated_bench" "$root/bin/weftio-initiated-bench"
if [ -n "${WEFTIO_BUNDLE_ONLY:-}" ]; then
    IFS='|' read -r -a wanted <<<"$WEFTIO_BUNDLE_ONLY"
    for name in "${wanted[@]}"; do
        [ -f "$root/bin/$name" ] || fail "WEFTIO_BUNDLE_ONLY names $name, which is not in $build (have: $(ls -C -w 0 "$root/bin")); build it"
    done
    find "$root/bin" -type f -regextype posix-extended ! -regex ".*/($WEFTIO_BUNDLE_ONLY)" -delete
fi

mkdir "$root/libexec"
[ ! -f "$root/bin/forward_bench" ] || ! testpmd=$(command -v dpdk-testpmd) || cp -L "$testpmd" "$root/libexec/"
programs=$(find "$root/bin" "$root/libexec" -type f)

pmds=$(ls -d /usr/lib/x86_64-linux-gnu/dpdk/pmds-* | head -n 1)
nics='atlantic axgbe bnxt cxgbe e1000 ena enic fm10k hns3 i40e iavf ice igc ionic ixgbe mlx4 mlx5 netvsc ngbe nfp qede sfc txgbe virtio vmxnet3'
for driver in bus_vdev bus_pci bus_auxiliary bus_vmbus mempool_ring net_null net_ring net_pcap net_tap net_af_packet net_af_xdp \
    net_memif net_bonding $(printf 'net_%s ' $nics); do
    # One file, two names: drivers need each other as libraries, and a second copy would register everything twice.
    for file in "$pmds"/librte_$driver.so.*.*; do
        [ -f "$file" ] || continue
        soname=$(basename "${file%.*}")
        cp -L "$file" "$root/lib/$soname"
        ln -s "../$soname" "$root/lib/dpdk-pmds/$(basename "$file")"
    done
done
# EAL loads the drivers of an installed DPDK by itself, and a driver that is there twice is fatal: ours looks where nothing is. The
# path keeps its length; Weftio loads the folder above (lib/src/core/program.cpp).
nowhere=$(printf '/nowhere%*s' $((${#pmds} - 8)) '' | tr ' ' '_')
needs_eal=$(libraries_of $programs | awk '/librte_eal/ {path = $3} END {print path}')
LC_ALL=C sed "s#$pmds#$nowhere#g" "$needs_eal" >"$root/lib/$(basename "$needs_eal")"
grep -q "$nowhere" "$root/lib/$(basename "$needs_eal")" || fail "$needs_eal does not name $pmds"
glibc='^(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libresolv|libcuda)\.'
libraries_of $programs "$root"/lib/*.so.* >"$stage/libraries"
missing=$(awk '/=> not found/ {print $1}' "$stage/libraries" | sort -u)
[ -z "$missing" ] || fail "no $missing in $build/lib, in LD_LIBRARY_PATH or on this machine; build or install it"
for library in $(awk '$2 == "=>" && $3 ~ /^\// {print $3}' "$stage/libraries" | sort -u); do
    basename "$library" | grep -qE "$glibc" || [ -f "$root/lib/$(basename "$library")" ] || cp -L "$library" "$root/lib/"
done
# Whose the libraries are, as Debian's packages say.
package_of() { dpkg-query -S "*/$1" 2>/dev/null | head -n 1 | cut -d: -f1 || true; } # none for one of the build
mkdir -p "$root/licenses" "$root/share/man/man1" "$root/bench"
cp "$source"/bench/{pairs,figures,versus,table.py,goals.json,README.md} "$root/bench/" # figures of this bundle, beside another, or testpmd
cp "$source/LICENSE" "$source/README.md" "$source/CHANGELOG.md" "$root/"
cp -r "$source/docs" "$root/docs"
mv "$root"/docs/weftio-*.1 "$root/share/man/man1/"
for library in "$root"/lib/*.so*; do
    package=$(package_of "$(basename "$library")")
    [ -f "/usr/share/doc/$package/copyright" ] && cp "/usr/share/doc/$package/copyright" "$root/licenses/$package"
done
strip --strip-debug $programs "$root"/lib/*.so* 2>/dev/null || true
# EAL loads no drivers from folders below one where everybody may write, such as /tmp: the loader loads those that versus names.
if [ -f "$root/libexec/dpdk-testpmd" ]; then
    cat >"$root/bin/dpdk-testpmd" <<'END'
#!/bin/sh
root=$(dirname "$(dirname "$(readlink -f "$0")")")
drivers=
for driver in mempool_ring net_null net_ring net_af_packet net_af_xdp; do
    for file in "$root"/lib/librte_$driver.so.*; do
        [ ! -f "$file" ] || drivers="$drivers ${file##*/}"
    done
done
LD_LIBRARY_PATH=$root/lib LD_PRELOAD=$drivers exec "$root/libexec/dpdk-testpmd" "$@"
END
    chmod +x "$root/bin/dpdk-testpmd"
fi
tar -C "$stage" -czf "$stage/archive" weftio
mv "$stage/archive" "$archive"
echo "$archive: $(du -h "$archive" | cut -f1), $(ls "$root/bin" | wc -l) programs, $(ls "$root/lib" | wc -l) libraries"
