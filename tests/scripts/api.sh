#!/usr/bin/env bash
# The public interface is what tests/public_api.txt lists: who changes it sees so in the difference, and so does who reads it.
#
#   tests/scripts/api.sh --update      writes the list anew
set -uo pipefail
. "$(dirname "$0")/checks.bash"
cd "$(dirname "$0")/../.."
list=tests/public_api.txt
ctags --version 2>/dev/null | grep -q "^Universal Ctags 5.9.0" ||
    skip "the public interface: Universal Ctags 5.9.0 is missing (apt-get install universal-ctags); others write lists a little otherwise"

# Names, where they stand, parameters and types; of classes what is not private.
listed() {
    ctags -x --language-force=C++ --kinds-C++=cgestfmpuvd --sort=no -D WEFTIO_FN= -D WEFTIO_GLOBAL= --_xformat='%F: %K %s %N%S %t [%a]' "$@" |
        grep -v '\[private\]$' | sed -E 's@^(lib|device)/include/weftio/@@; s/ \[(public|-)?\]$//; s/ +/ /g; s/ +$//; s/- (struct|enum|typename):/ : \1 /; s/ typename:/ : /; s/ : typename / : /; s/- :/ :/; s/( -|- -|-)$//; s/ +$//' |
        grep -vE " __anon|weftio::(detail|devices|queues|nic)|macro WEFTIO_(FN|GLOBAL)$" | LC_ALL=C sort -u
}
mapfile -t headers < <(find lib/include device/include -name '*.h' -o -name '*.hpp' | grep -vE '/(platform|detail)/' | sort)
if [ "${2:-${1:-}}" = --update ]; then
    listed "${headers[@]}" >"$list"
    exit
fi
check "the public interface is that of $list (tests/scripts/api.sh --update, if it is meant to change)" "$(cat "$list")" \
    "$(listed "${headers[@]}")"
finish
