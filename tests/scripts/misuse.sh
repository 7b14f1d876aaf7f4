#!/usr/bin/env bash
# What users may write by mistake does not compile, and the compiler says why. Sources of tests/misuse compile without the lines
# that end in `refused: WORDS`; with any one of these they do not, and the diagnostic names the line and has the words (a regex).
set -uo pipefail
. "$(dirname "$0")/checks.bash"
. "$(dirname "$0")/passed_before.bash"
cd "$(dirname "$0")/../.."
clang=$(command -v clang-14 || command -v clang)
nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc)
skip_if_passed tests/misuse device/include lib/include -- "${CXX:-g++}" $clang $nvcc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
marked=' refused: '

# only FILE LINE: prints it without marked lines, but for that one.
only() {
    awk -v line="$2" -v marked="$marked" '{print NR != line && index($0, marked) ? "" : $0}' "$1"
}

# complaint FILE LINE COMPILER...: what the compiler says of the file with that marked line only.
complaint() {
    local file=$1 copy=$work/${1##*/}
    only "$file" "$2" >"$copy"
    shift 2
    LC_ALL=C "$@" -Idevice/include "$copy" 2>&1
}

# tells LINE FILE WORDS OUTPUT: the diagnostic is an error, is of that line, and has the words.
tells() {
    grep -q "error: " <<<"$4" && grep -qE "/${2##*/}[:(]$1\b" <<<"$4" && grep -qE -- "$3" <<<"$4"
}

# refused_by NAME FILE COMPILER...: every marked line of that file.
refused_by() {
    local name=$1 file=$2 line words said cases=0
    shift 2
    check "$file, $name: compiles without what is refused" "" "$(complaint "$file" 0 "$@")"
    while IFS=: read -r line words; do
        words=${words#*"$marked"}
        said=$(complaint "$file" "$line" "$@")
        cases=$((cases + 1))
        tells "$line" "$file" "$words" "$said" || check "$file:$line, $name" "an error of that line with the words $words" "${said:-compiles}"
    done < <(grep -n "$marked" "$file")
    check "$file, $name: has lines that are refused" yes "$([ $cases -gt 0 ] && echo yes)"
}

# The library's headers are compiled once for all cases.
mkdir "$work/weftio"
headers=$work/weftio/weftio.hpp.gch
strict=(-std=c++20 -Werror -Idevice/include -Ilib/include)
gcc=("${CXX:-g++}" "${strict[@]}")
"${gcc[@]}" -w -x c++-header lib/include/weftio/weftio.hpp -o "$headers" || exit 1
for file in tests/misuse/*.cpp; do
    refused_by "${gcc[0]}" "$file" "${gcc[0]}" -I"$work" "${strict[@]}" -fsyntax-only
done

if [ -n "$clang" ]; then
    "$clang" "${strict[@]}" -x c++-header lib/include/weftio/weftio.hpp -o "$work/clang.pch" || exit 1
    for file in tests/misuse/*.cpp; do
        refused_by clang "$file" "$clang" -include-pch "$work/clang.pch" "${strict[@]}" -fsyntax-only
    done
    for file in tests/misuse/*.cl; do
        refused_by "OpenCL C 3.0" "$file" "$clang" -x cl -cl-std=CL3.0 -Xclang -finclude-default-header --target=spir64 \
            -Werror -fsyntax-only
    done
else
    echo "skipped: clang is missing (apt-get install clang-14): what Clang and OpenCL C refuse"
fi

if [ -n "$nvcc" ]; then
    for file in tests/misuse/*.cu; do
        refused_by CUDA "$file" "$nvcc" -std=c++17 -arch=sm_90 -c -o /dev/null
    done
else
    echo "skipped: nvcc is missing: what CUDA C++ refuses"
fi
finish_passed
