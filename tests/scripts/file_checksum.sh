#!/usr/bin/env bash
# file_checksum beside zlib, on each device: files of awkward lengths, and what cannot be read.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
sample=$build/samples/file_checksum
command -v python3 >/dev/null || skip "file_checksum beside zlib: python3 is not installed"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

find_devices "$sample" "$0"

adler32() { python3 -c 'import sys, zlib; print("%08x" % zlib.adler32(open(sys.argv[1], "rb").read()))' "$1"; }
for bytes in 0 1 4095 131072 131073 5000001; do
    head -c "$bytes" /dev/urandom >"$work/$bytes"
    for device in $devices; do
        check "$bytes bytes on $device" "$(adler32 "$work/$bytes")  $work/$bytes" \
            "$(bounded "$sample" -g "$device" "$work/$bytes" 2>/dev/null)"
    done
done
# More reads in flight than the file has pieces, one only, pieces of odd lengths, fewer and more lanes than bytes.
for form in "--reads 64 --bytes 1000" "--reads 1 --bytes 77777" "--reads 3 --bytes 4097 --lanes 1" "--bytes 16 --lanes 64"; do
    # shellcheck disable=SC2086
    check "131073 bytes with $form" "$(adler32 "$work/131073")  $work/131073" \
        "$(bounded "$sample" $form "$work/131073" 2>/dev/null)"
done

refused() { # what, exit status, part of the sentence, arguments...
    local what=$1 status=$2 part=$3 seen
    shift 3
    seen=$(bounded "$sample" "$@" 2>&1)
    check "$what: exit status" "$status" $?
    check_has "$what" "$part" "$seen"
}
refused "no file" 1 "file is required"
refused "no such file" 4 "No such file or directory; name a readable file" "$work/none"
refused "a folder" 4 "is neither a regular file nor a block device" "$work"
refused "no reads" 1 "--reads: Value 0 not in range" --reads 0 "$work/1"
refused "no such device" 4 "weftio: device" -g nothing "$work/1"
finish
