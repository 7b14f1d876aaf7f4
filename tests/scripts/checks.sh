#!/usr/bin/env bash
# checks.bash itself: how a script ends that has run out of time, and one with a failed check; and which WEFTIO_PATIENCE is refused.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
build=$1 beside=$(realpath "$(dirname "$0")")

# ends WHAT STATUS LAST-LINE COMMANDS: a script of these commands.
ends() {
    local said
    said=$(WEFTIO_PATIENCE=0.02 bash -c ". '$beside/checks.bash'; $4" 2>&1)
    check "$1: exit status" "$2" $?
    check "$1: last line" "$3" "$(tail -1 <<<"$said")"
}
ends "a good script" 0 "0 checks failed" 'check one 1 1; eventually true; bounded true; finish'
ends "a failed check" 1 "1 checks failed" 'check one 1 2; finish'
ends "an eventually that runs out" 75 "out of time: waited 2 s for this: test -e /none" 'eventually test -e /none; check one 1 2; finish'
ends "a failed check before that" 1 "1 checks failed" 'check one 1 2; eventually test -e /none; finish'
ends "a program that does not end" 75 "out of time: waited 2 s for this: sleep 20" 'bounded sleep 20; check one 1 2; finish'
ends "one that a command has started" 75 "out of time: waited 2 s for this: twice sleep 20" \
    'twice() { "$@"; "$@"; }; bounded twice sleep 20; check one 1 2; finish'
ends "one that is killed later" 75 "out of time: waited 2 s for this: the end of sleep" 'sleep 20 & wait_for_end $! "the end of sleep"; finish'
check_has "its threads are told" "sleep: S, " "$(WEFTIO_PATIENCE=0.02 bash -c ". '$beside/checks.bash'; bounded sleep 20" 2>&1)"
ends "the same in a subshell" 75 "out of time: waited 2 s for this: sleep 20" 'said=$(bounded sleep 20); check one 1 "$said"; finish'
ends "a failed check before one in a subshell" 1 "2 checks failed" 'check one 1 2; said=$(bounded sleep 20); check status 0 $?; finish'
ends "an exit status" 1 "1 checks failed" 'bounded false; check status 0 $?; finish'
ends "what is lost" 1 "1 checks failed" 'within_patience test -e /none; check one 1 2; finish'
ends "a process that is slow" 75 "out of time: waited 2 s for this: test -e /none" \
    'sleep 20 & trap "kill $!" EXIT; eventually_by $! test -e /none; finish'
ends "a process that ends early" 1 "1 checks failed" 'false & eventually_by $! test -e /none; finish'
ends "a process that a signal ends" 1 "1 checks failed" 'sleep 20 & kill -SEGV $!; eventually_by $! test -e /none; finish'
ends "its folders" 75 "cleaned" 'trap "echo cleaned" EXIT; eventually test -e /none'
ends "what it has left" 0 "0 checks failed" 'trap end_all EXIT; (sleep 5; echo late) & (sleep 5; echo late) | cat & finish'

# Scripts and unit tests refuse the same.
for value in 0 -1 x 1x 1001 nan; do
    refusal="WEFTIO_PATIENCE is \"$value\", which is no number above 0 and up to 1000: set it to how many minutes tests wait"
    check "$value in a script" "$refusal 2" "$(WEFTIO_PATIENCE=$value bash -c ". '$beside/checks.bash'") $?"
    [ ! -x "$build/tests/device_test" ] ||
        check "$value in a unit test" "$refusal 2" "$(WEFTIO_PATIENCE=$value "$build/tests/device_test" --gtest_list_tests 2>&1) $?"
done
check "patience is a minute" 60 "$(env -u WEFTIO_PATIENCE bash -c ". '$beside/checks.bash'; echo \$patience")"
check "patience of half a minute" 30 "$(WEFTIO_PATIENCE=.5 bash -c ". '$beside/checks.bash'; echo \$patience")"
finish
