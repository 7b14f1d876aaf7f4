#!/usr/bin/env bash
# Pictures of docs/ that a script draws are as it draws them.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
docs/lives.py "$work"
for picture in regular-life persistent-life; do
    check "docs/$picture.svg is as docs/lives.py draws it" "$(cat "$work/$picture.svg")" "$(cat "docs/$picture.svg")"
    check_has "docs/memory.md shows $picture.svg" "($picture.svg)" "$(cat docs/memory.md)"
done
docs/parties.py "$work"
for picture in three-parties four-parties; do
    check "docs/$picture.svg is as docs/parties.py draws it" "$(cat "$work/$picture.svg")" "$(cat "docs/$picture.svg")"
    check_has "docs/litmus.md shows $picture.svg" "($picture.svg)" "$(cat docs/litmus.md)"
done
finish
