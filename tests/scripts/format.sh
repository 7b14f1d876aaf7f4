#!/usr/bin/env bash
# Our sources are as `make format` writes them, and no line is longer than 120, which clang-format leaves in comments. Other versions of
# clang-format write them a little otherwise.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
cd "$(dirname "$0")/../.."
command -v clang-format-14 >/dev/null || skip "the format of sources: clang-format-14 is not installed"
git rev-parse --git-dir >/dev/null 2>&1 || skip "the format of sources: this is no checkout of git"
git ls-files '*.hpp' '*.cpp' '*.h' '*.cu' | xargs clang-format-14 --dry-run --Werror
formatted=$?
check "no line is longer than 120" "" "$(git grep -nE '.{121,}' -- '*.hpp' '*.cpp' '*.h' '*.c' '*.cu' | cut -c1-160)"
check "sources are as make format writes them" 0 $formatted
finish
