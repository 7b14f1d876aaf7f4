# Checks that no compiler cache helps, and that give the same result for the same files. Sourced, not run:
# . "$(dirname "$0")/passed_before.bash"

# skip_if_passed FILE_OR_FOLDER... -- COMPILER...: exit status 77 when this script has passed with the same files and compilers
# before, on any clone of this user; ~/.cache/weftio-tests keeps what has passed. WEFTIO_COLD=1 runs it anyway. Needs checks.bash, and
# the root of the sources as working directory.
skip_if_passed() {
    local files=() folder=${XDG_CACHE_HOME:-${HOME:-/dev/null}/.cache}/weftio-tests name
    name=$(basename "$0" .sh)
    while [ "$1" != -- ]; do
        files+=("$1")
        shift
    done
    shift
    mapfile -t files < <(find "${files[@]}" "tests/scripts/$name.sh" -type f | LC_ALL=C sort)
    passed_mark=$folder/$name.$({ sha256sum "${files[@]}" && for compiler; do "$compiler" --version; done; } 2>&1 | sha256sum | cut -c1-32)
    [ -z "${WEFTIO_COLD:-}" ] && [ -e "$passed_mark" ] &&
        skip "$name: passed on $(date -r "$passed_mark" +%F) with the same headers, script and compilers (WEFTIO_COLD=1 runs it again)"
}

# finish_passed: as finish; remembers that the script has passed.
finish_passed() {
    if [ $failures = 0 ]; then
        mkdir -p "${passed_mark%/*}" 2>/dev/null && touch "$passed_mark" &&
            find "${passed_mark%/*}" -name "$(basename "$0" .sh).*" -mtime +30 -delete
    fi
    finish
}
