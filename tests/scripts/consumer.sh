#!/usr/bin/env bash
# Programs outside the tree build against an installed Weftio and run: with CMake, with Meson and pkg-config, and with Meson
# and the sources as a subproject.
set -euo pipefail
build=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../..")

for tool in meson ninja pkg-config; do
    command -v $tool >/dev/null || {
        echo "building a consumer with Meson: $tool is not installed"
        exit 77
    }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$source/tests/consumer" "$work/source"
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
# The package must not depend on where it was installed first.
mv "$work/prefix" "$work/moved"
pc_dir=$(dirname "$(find "$work/moved" -name weftio.pc)")

echo "== programs take libraries from no working directory"
for program in "$build"/{apps,samples,bench,tests}/* "$work"/moved/bin/*; do
    [[ -f $program && -x $program ]] || continue
    if readelf -d "$program" | grep -E 'R(UN)?PATH.*(\[:|::|:\])'; then
        echo "$program looks for its libraries in the working directory"
        exit 1
    fi
done

echo "== CMake, find_package"
cmake -S "$work/source" -B "$work/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_BUILD_TYPE=Release
cmake --build "$work/cmake"
"$work/cmake/consumer"

echo "== Meson, pkg-config"
PKG_CONFIG_PATH=$pc_dir meson setup "$work/meson" "$work/source" --wrap-mode=nofallback
meson compile -C "$work/meson"
"$work/meson/consumer"

echo "== Meson, subproject"
mkdir "$work/source/subprojects"
ln -s "$source" "$work/source/subprojects/weftio"
ln -s weftio/meson-compat "$work/source/subprojects/weftio-meson"
meson setup "$work/subproject" "$work/source" --wrap-mode=forcefallback
meson compile -C "$work/subproject" consumer
"$work/subproject/consumer"
