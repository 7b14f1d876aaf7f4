# What tests of programs below weftio-run have in common. Sourced behind checks.bash, with $1: the build folder.
#
#   needs_weftio_run WHAT                     sets `build`, `run` and `here` (tests/verbs), and leaves the user's settings out
#   needs_file FILE PACKAGE WHAT
#   c_program NAME OPTION...                  builds tests/verbs/NAME.c to $work/NAME

needs_weftio_run() {
    run=$build/apps/weftio-run here=$(dirname "${BASH_SOURCE[0]}")/../verbs
    [ -x "$run" ] && [ -f "$build/lib/verbs/libweftio-verbs.so" ] || skip "$1: weftio-run is not built"
    unset LD_PRELOAD SYSFS_PATH ${!WEFTIO_RUN_*}
}

needs_file() {
    [ -f "$1" ] || skip "$3: no $(basename "$1"): install $2"
}

c_program() {
    cc -O1 -Wall -Wextra -Werror -std=gnu11 -o "$work/$1" "$here/$1.c" "${@:2}" || exit 1
}
