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

# ROOM: namespaces of other rooms that its headers open for nothing but a forward declaration.
forward_declared() {
    grep -rhE -A2 --include='*.hpp' '^namespace weftio::[a-z_:]+ \{$' "$1" |
        awk '/^namespace/ {space = $2; next}
             /^(class|struct) [a-z_]+;$/ {declared = space; next}
             /^}/ && declared {print declared}
             {declared = ""}' | sort -u
}

nested='nic/soft/engine|nic/soft/work|nic/soft/receive|nic/soft/send|nic/soft/dma|nic/soft/files|nic/soft/rdma|nic/soft' # rooms within a room
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
check "the page lists rooms" 45 "$rooms"

for room in lib/src/*/; do
    check_has "docs/architecture.md lists ${room%/}" "| \`${room%/}\` |" "$(cat docs/architecture.md)"
done
# A room's files open the namespace of its name; what belongs to public classes stands in weftio.
for room in lib/src/*/; do
    name=${room#lib/src/}
    check "$room opens weftio and weftio::${name%/}" "" \
        "$(grep -rhoE '^(namespace|using namespace) weftio[a-z_:]*' --include='*.?pp' "$room" | sed -E 's/^.*namespace //' |
            sort -u | grep -vE "^weftio(::${name%/}(::[a-z0-9_:]+)?)?$" | grep -vxFf <(forward_declared "$room") || true)"
done
values='access|clock|completion_overrun|counters|error|events|file_result|flow_match|log|memory_kind|options|port_info|rdma_dump|rdma_state|refusal'
check "below the objects, public headers hold values" "" \
    "$(grep -rnE '#include "weftio/[a-z_/]+\.hpp"' lib/src/{net,keys,roce,wires,dpdk,nic,storage} |
        grep -vE "weftio/($values)\.hpp" || true)"
# What docs/architecture.md names in code is there: files, members of a class, device functions.
while read -r name; do
    case $name in
    *.*) found=$(find lib device -path "*/$name" | head -1) ;;
    *::*) # a member: in a header that has the class
        class="(class|struct) (.* )?${name%%::*}\b"
        found=$(grep -rlE "$class" --include='*.hpp' lib | xargs -r grep -lwE "${name##*::}" | head -1)
        ;;
    *) found=$(grep -rlE "${name//\*/[a-z_]*}\b" device/include | head -1) ;;
    esac
    check "docs/architecture.md names $name, which is there" yes "${found:+yes}"
done < <(grep -oE '`(weftio_dev_[a-z_*]+|[a-z_]+::[a-z_]+|[a-z_/]+\.[ch](pp)?)`' docs/architecture.md | tr -d '`' | grep -v ^weftio:: | sort -u)
check "device/ includes nothing of lib/" "" "$(grep -rlE '#include.*\.hpp' device/include || true)"
check "no ordering outside platform.h and platform/" "" \
    "$(grep -rnE '__atomic|__threadfence|memory_order_|asm volatile|atomic_thread_fence' device/include |
        grep -v '/platform' | grep -vE '^[^:]*:[0-9]+: *(\*|/\*|//)' || true)"
finish
