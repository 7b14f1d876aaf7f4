#!/usr/bin/env bash
# Every source file has suites that tests/mutants and tests/mutants-at-once run for it, and one that has none is named.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
cd "$(dirname "$0")/../.."
git rev-parse --git-dir >/dev/null 2>&1 || skip "which suites guard which sources: this is no checkout of git"

# drawn COMMAND...: how many mutants it lists, or what it says instead.
drawn() {
    local words
    words=$("$@" 2>&1) && grep -cE '^(lib|device)/.*: [a-z_]+$' <<<"$words" || tail -3 <<<"$words"
}
check "tests/mutants draws from all sources" 9 "$(drawn tests/mutants --list --count 9)"
check "tests/mutants-at-once draws from all sources" 9 "$(drawn tests/mutants-at-once sow --list --count 9)"
check "and from those of one folder" 9 "$(drawn tests/mutants-at-once sow --list --count 9 --only lib/src/roce)"

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files lib/src device/include tests/unit tests/mutants tests/mutants-at-once | tar -cT - | tar -xC "$copy"
mkdir -p "$copy/lib/src/attic"
echo 'void dust() {}' >"$copy/lib/src/attic/dust.cpp"
git -C "$copy" init -q
git -C "$copy" add .
for program in "tests/mutants --list" "tests/mutants-at-once sow --list"; do
    words=$("$copy"/$program 2>&1)
    check "$program: exit status where a folder has no suites" 1 $?
    check "$program: what it says" "tests/mutants: lib/src/attic/dust.cpp: no suite is known for lib/src/attic; \
add that folder to SUITES in tests/mutants" "$words"
done
finish
