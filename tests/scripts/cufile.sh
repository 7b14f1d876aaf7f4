#!/usr/bin/env bash
# libcufile.so.0 as a program finds it: installed into a folder of its own, with nothing of CUDA and of DPDK, and with cuFile's
# functions alone. A program is compiled against the installed header, as C99 and as C++.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$(realpath "$1")
sources=$(realpath "$(dirname "$0")/../..")
[[ -e $build/lib/cufile/libcufile.so.0 ]] || skip "cuFile's functions were not called: build/lib/cufile/libcufile.so.0 is not built"
grep -q 'WEFTIO_SANITIZE:STRING=.' "$build/CMakeCache.txt" && skip "libcufile.so.0 needs the sanitizer's library in this build"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --component cufile --prefix "$work/prefix" >"$work/install.txt" || check "it is installed" yes "$(cat "$work/install.txt")"
library=$(find "$work/prefix" -name libcufile.so.0)
check "what is installed" "include/cufile.h libcufile.so libcufile.so.0" \
    "$(cd "$work/prefix" && find . -name '*.h' -o -name '*.so' -o -name '*.so.0' | sed -E 's@^\./@@; s@^lib.*/@@' | sort | tr '\n' ' ' | sed 's/ $//')"
check "lib64 has the library, too" yes "$([ "$work/prefix/lib64/libcufile.so" -ef "$library" ] && echo yes)"
cmake --install "$build" --component cufile --prefix "$work/prefix" >"$work/install.txt" 2>&1
check "it is installed again" 0 $?
check "its name" libcufile.so.0 "$(readelf -d "$library" | sed -nE 's/.*\(SONAME\).*\[(.*)\]/\1/p')"
check "it needs nothing but the C library and io_uring's" "" \
    "$(readelf -d "$library" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' | grep -vE '^(libc|libm|ld-linux-[a-z0-9-]+|liburing)\.so\.[0-9]+$')"
check "it stays when a program closes it" NODELETE "$(readelf -d "$library" | grep -o NODELETE)"
named() { grep -oE '\bcuFile[A-Z][A-Za-z0-9_]*\(' "$1" | tr -d '(' | sort -u; }
check "it exports what its header declares, and nothing else" "$(named "$work/prefix/include/cufile.h"; echo weftio_cufile_version)" \
    "$(nm -D --defined-only "$library" | awk '{print $3}' | sort -u)"

# Each compiler reads our header and no other of that name.
compile() {
    local name=$1
    shift
    "$@" -pedantic -Wall -Wextra -Werror -I "$work/prefix/include" -H "$sources/tests/cufile/program.c" \
        -L "$(dirname "$library")" -lcufile -o "$work/$name" 2>"$work/$name.txt" || check "$name compiles" "" "$(cat "$work/$name.txt")"
    check "$name reads our cufile.h alone" "$work/prefix/include/cufile.h" "$(sed -nE 's/^\.+ (.*cufile\.h)$/\1/p' "$work/$name.txt")"
    check "$name runs" "" "$(LD_LIBRARY_PATH=$(dirname "$library") timeout -k 5 $patience "$work/$name" "$work/file" 2>&1 | grep -v ^ok)"
    rm -f "$work/file"
}
vendor=$build/tests/vendor # a library of the same name, which a program names by its RPATH
if [[ -e $vendor/libcufile.so.0 ]]; then
    printf '#define _GNU_SOURCE\n#include <dlfcn.h>\n#include "cufile.h"\nint main(void) { cuFileDriverOpen(); return !dlsym(RTLD_DEFAULT, "weftio_cufile_version"); }\n' >"$work/named.c"
    "${CC:-cc}" -I "$work/prefix/include" "$work/named.c" -L "$(dirname "$library")" -lcufile -ldl \
        -Wl,--disable-new-dtags,-rpath,"$vendor",--allow-shlib-undefined -o "$work/named"
    check "an RPATH has another library" 1 "$(LD_LIBRARY_PATH=$(dirname "$library") "$work/named"; echo $?)"
    check "LD_PRELOAD puts ours before it" 0 "$(LD_PRELOAD=$library "$work/named"; echo $?)"
fi
compile "a C99 program" "${CC:-cc}" -std=c99 -D_DEFAULT_SOURCE
compile "a C++ program" "${CXX:-c++}" -std=c++11 -x c++
finish
