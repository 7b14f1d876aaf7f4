#!/usr/bin/env bash
# Prints how long files and functions are, beside the guide of docs/development.md: files of 350 lines and functions of 30, with 500 and 50
# as the rare exception. Nothing fails here: a file is cut where its topic ends, not where a ruler does.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
cd "$(dirname "$0")/../.."
ctags --version 2>/dev/null | grep -q '^Universal' || skip "the length of functions: universal-ctags is not installed"
git rev-parse --git-dir >/dev/null 2>&1 || skip "the length of files: this is no checkout of git"

# WHAT LIMIT: prints a summary of standard input, lines of "LENGTH NAME", and those that are longer than LIMIT.
print_lengths() {
    local what=$1 limit=$2 lengths count
    lengths=$(sort -n)
    count=$(grep -c . <<<"$lengths")
    echo "$count $what: half have at most $(sed -n "$((count / 2))p" <<<"$lengths" | cut -d' ' -f1) lines, 95 of 100" \
        "$(sed -n "$((count * 95 / 100))p" <<<"$lengths" | cut -d' ' -f1); longer than $limit:"
    awk -v limit="$limit" '$1 > limit {print "   " $0}' <<<"$lengths"
}

mapfile -t files < <(git ls-files '*.cpp' '*.hpp' '*.h' '*.cu' '*.cl' | while read -r file; do [ -f "$file" ] && echo "$file"; done)
wc -l "${files[@]}" | awk '$2 != "total" { print $1, $2 }' | print_lengths files 500
printf '%s\n' "${files[@]}" | ctags -f - --langmap=C++:+.h.cu.cl --c++-kinds=f --fields=+ne -L - 2>/dev/null |
    awk -F'\t' '{
        begin = end = 0
        for (field = 4; field <= NF; ++field)
            if ($field ~ /^line:/) begin = substr($field, 6)
            else if ($field ~ /^end:/) end = substr($field, 5)
        if (end) print end - begin + 1, $2 ":" begin, $1
    }' | print_lengths functions 50
check "files are found" yes "$([ "${#files[@]}" -ge 100 ] && echo yes || echo "${#files[@]}")"
finish
