#!/usr/bin/env bash
# tests/run-all repeats what only ran out of time, once, and says so; it takes nothing else for unsteady, and not for long.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
run_all=$(realpath "$(dirname "$0")/../run-all")
export work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache

# fake NAME COMMAND: one more test of the fake build, a script as tests/CMakeLists.txt has them.
fake() {
    printf '%s\n' "$2" >"$work/build/$1.sh"
    printf 'add_test(script.%s bash -c "bash \\"$0\\"; status=$?; [ $status != 75 ] || echo exit status 75; exit $status" "%s")\n' \
        "$1" "$work/build/$1.sh" >>"$work/build/CTestTestfile.cmake"
    echo "set_tests_properties(script.$1 PROPERTIES SKIP_RETURN_CODE 77 RESOURCE_GROUPS network:1)" >>"$work/build/CTestTestfile.cmake"
}

# suite NAME COMMAND: one more test of the fake build, a program as GoogleTest makes them with one case, A.B, that COMMAND is.
suite() {
    cat >"$work/build/$1.sh" <<END
fails=0
for round in \$(seq \${GTEST_REPEAT:-1}); do ($2) || fails=1; done
[ \$fails = 0 ] || failure='<failure message="B is wrong"/>'
echo "<testsuites><testsuite><testcase classname='A' name='B' status='run'>\$failure</testcase></testsuite></testsuites>" >\${GTEST_OUTPUT#xml:}
exit \$fails
END
    cat >>"$work/build/CTestTestfile.cmake" <<END
add_test($1 bash "$work/build/$1.sh")
set_tests_properties($1 PROPERTIES RESOURCE_GROUPS network:1 ENVIRONMENT "GTEST_OUTPUT=xml:$work/build/test-results/$1.xml")
END
}

begin() {
    rm -rf "$work/build"
    mkdir "$work/build"
    echo '{"version": {"major": 1, "minor": 0}, "local": [{"network": [{"id": "a"}]}]}' >"$work/build/test-places.json"
    fake steady "exit 0"
}

# late NAME: out of time in its first run, well in its second.
late() {
    fake "$1" "[ -e $work/build/$1.seen ] || { touch $work/build/$1.seen; echo 'out of time: a peer'; exit 75; }"
}

run() {
    said=$("$run_all" "$work/build" 2>&1)
    status=$?
}

begin
late once
run
check "a script that ran out of time once: exit status" 0 $status || echo "$said"
check_has "it is listed, with what it waited for" $'unsteady: script.once: out of time: a peer\n2 passed, 0 failed, 0 skipped' "$said"

begin
late once
run
check "again in the next run: exit status" 1 $status
check_has "again in the next run" "unsteady twice in five runs: script.once" "$said"

for other in 1 2 3 4; do
    begin
    run
done
begin
late once
run
check "again five runs later: exit status" 0 $status || echo "$said"

begin
fake never "echo 'out of time: a peer'; exit 75"
run
check "a script that runs out of time twice: exit status" 1 $status
check_has "a script that runs out of time twice" "1 passed, 1 failed, 0 skipped" "$said"

begin
fake wrong "touch $work/build/seen-\$\$; echo 'out of time: a peer'; exit 1"
run
check "another failure: exit status" 1 $status
check "another failure is not repeated" 1 "$(find "$work/build" -name 'seen-*' | wc -l)"
check "another failure is not unsteady" "" "$(grep '^unsteady' <<<"$said")"

begin
for name in one two three; do late $name; done
run
check "three in one run: exit status" 1 $status
check_has "three in one run" "3 tests are unsteady in one run: script.one, script.three, script.two; at most 2 may be" "$said"

begin
suite crowded 'echo round >>$work/build/rounds; [ $(wc -l <$work/build/rounds) != 1 ]'
run
check "a case that passes alone: exit status" 0 $status || echo "$said"
check_has "it is listed, with how it had failed" $'unsteady: crowded.A.B: passed 10 times alone, but failed beside others:\n    B is wrong\n2 passed, 0 failed, 0 skipped' "$said"
check "it ran alone, ten times" 11 "$(wc -l <"$work/build/rounds")"

begin
suite rare 'echo round >>$work/build/rounds; case $(wc -l <$work/build/rounds) in 1 | 8) exit 1 ;; esac'
run
check "a case that fails alone, too: exit status" 1 $status
check_has "a case that fails alone, too" "1 passed, 1 failed, 0 skipped" "$said"

begin
suite racy '[ ${GTEST_REPEAT:-1} != 1 ] || { echo ThreadSanitizer: data race; exit 1; }'
run
check_has "what a sanitizer tells is not repeated" "failed: racy: A.B" "$said"

begin
for name in one two three; do suite $name '[ ${GTEST_REPEAT:-1} != 1 ]'; done
run
check_has "three cases in one run" "1 passed, 3 failed, 0 skipped" "$said"

begin
XDG_CACHE_HOME=/dev/null run
check_has "a folder that cannot be written" "1 passed, 0 failed, 0 skipped" "$said"

begin
fake missed "echo 'skipped: no network'; exit 77"
run
check_has "what was missed" "skipped: script.missed: skipped: no network" "$said"
check "nothing failed: nothing is told again" "" "$(cat "$work/build/test-results/failed")"

begin
fake wrong "echo ok: one; echo FAILED: two; echo '    > b'; seq 100; exit 1"
fake slow "seq 100; sleep 600"
echo 'set_tests_properties(script.slow PROPERTIES TIMEOUT 10)' >>"$work/build/CTestTestfile.cmake"
run
check "what failed is told again, a few lines of each" "failed: script.wrong
    FAILED: two
        > b
$(seq -f '    %g' 88 100)
failed: script.slow (killed by CTest after its 10 s)
$(seq -f '    %g' 86 100)" "$(cat "$work/build/test-results/failed")"
finish
