#!/usr/bin/env bash
# Files and functions stay as short as docs/development.md says: of files 95 of 100 have at most 350 lines and none has more than 500,
# of functions 95 of 100 have at most 30 lines and none has more than 50.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
cd "$(dirname "$0")/../.."
ctags --version 2>/dev/null | grep -q '^Universal' || skip "the length of functions: universal-ctags is not installed"
git rev-parse --git-dir >/dev/null 2>&1 || skip "the length of files: this is no checkout of git"

# WHAT MOST P95 LIMIT: checks lengths from standard input, lines of "LENGTH NAME".
check_lengths() {
    local what=$1 most=$2 limit=$3 lengths count short
    lengths=$(sort -n)
    count=$(grep -c . <<<"$lengths")
    short=$(sed -n "$((count * 95 / 100))p" <<<"$lengths" | cut -d' ' -f1)
    check "$what: 100 and more are found" yes "$([ "$count" -ge 100 ] && echo yes || echo "$count")"
    check "$what: none has more than $limit lines" "" "$(awk -v limit="$limit" '$1 > limit' <<<"$lengths")"
    check "$what: 95 of 100 have at most $most lines" yes "$([ "${short:-$((most + 1))}" -le "$most" ] && echo yes || echo "$short")"
    echo "   $count $what: 95 of 100 have at most $short lines, the longest $(tail -1 <<<"$lengths")"
}

mapfile -t files < <(git ls-files '*.cpp' '*.hpp' '*.h' '*.cu' '*.cl' | while read -r file; do [ -f "$file" ] && echo "$file"; done)
# The checks count in this shell, so they stand behind no pipe.
check_lengths files 350 500 < <(wc -l "${files[@]}" | awk '$2 != "total" { print $1, $2 }')
check_lengths functions 30 50 < <(
    printf '%s\n' "${files[@]}" | ctags -f - --langmap=C++:+.h.cu.cl --c++-kinds=f --fields=+ne -L - 2>/dev/null |
        awk -F'\t' '{
            begin = end = 0
            for (field = 4; field <= NF; ++field)
                if ($field ~ /^line:/) begin = substr($field, 6)
                else if ($field ~ /^end:/) end = substr($field, 5)
            if (end) print end - begin + 1, $2 ":" begin, $1
        }')
finish
