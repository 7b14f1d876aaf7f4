#!/usr/bin/env bash
# Includes point from room to room as docs/architecture.md says, and ordering stands in platform.h and platform/ only.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
cd "$(dirname "$0")/../.."

# ROOM FILE...: the rooms that the files include from, but for their own, core, and public headers.
included_by() {
    local room=$1
    shift
    sed -nE "s@^[[:space:]]*#[[:space:]]*include[[:space:]]*\"($nested|[a-z]+)/.*@\1@p" "$@" | sort -u |
        grep -vxE "core|weftio|${room#lib/src/}|${room#apps/replay/}|$(files_own_folders "$room")" | tr '\n' ' '
}

# ROOM: folders within it, as a pattern, by which its own files may include each other.
files_own_folders() {
    [[ $1 != lib/src/nic* ]] || { echo "-"; return; } # those are rooms of their own
    find "$1" -mindepth 1 -type d -printf '%f|' | sed 's/|$//' | grep . || echo "-"
}

nested='nic/soft/engine|nic/soft/receive|nic/soft/send|nic/soft/dma|nic/soft/rdma|nic/soft' # rooms within a room
rooms=0
while IFS='|' read -r _ room _ allowed _; do
    room=$(tr -d '` ' <<<"$room")
    [ -d "$room" ] || { check "$room is a folder" yes no; continue; }
    depth=9
    [[ $room != lib/src/nic* ]] || depth=1
    mapfile -t files < <(find "$room" -maxdepth $depth -name '*.[ch]pp' -o -maxdepth $depth -name '*.[ch]')
    wanted=$(tr -d '`' <<<"$allowed" | tr ' ' '\n' | grep . | sort -u | tr '\n' ' ')
    more=$(comm -13 <(tr ' ' '\n' <<<"$wanted" | grep .) <(included_by "$room" "${files[@]}" | tr ' ' '\n' | grep .))
    check "$room includes from ${wanted:-no other room}" "" "$more"
    rooms=$((rooms + 1))
done < <(grep -E '^\| `' docs/architecture.md)
check "the page lists rooms" 25 "$rooms"

for room in lib/src/*/; do
    check_has "docs/architecture.md lists ${room%/}" "| \`${room%/}\` |" "$(cat docs/architecture.md)"
done
check "device/ includes nothing of lib/" "" "$(grep -rlE '#include.*\.hpp' device/include || true)"
check "no ordering outside platform.h and platform/" "" \
    "$(grep -rnE '__atomic|__threadfence|memory_order_|asm volatile|atomic_thread_fence' device/include |
        grep -v '/platform' | grep -vE '^[^:]*:[0-9]+: *(\*|/\*|//)' || true)"
finish
