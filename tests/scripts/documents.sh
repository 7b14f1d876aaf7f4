#!/usr/bin/env bash
# Every command block of README.md, docs/*.md, the READMEs of meson-compat and the manual pages' EXAMPLES runs, page by page, each in a fresh clone of what git has
# here: documents.py has the rules, and prints for each page what ran and what did not, and why. `make demo` and `make` build once from
# nothing, with the compiler cache; a page's own `make` begins with what they made. README.md also runs in a clone with a blank in its path.
set -uo pipefail
. "$(dirname "$0")/checks.bash"
documents=$(realpath "$(dirname "$0")/documents.py")
source=$(realpath "$(dirname "$0")/../..")
cd "$source" || exit 1
git rev-parse --git-dir >/dev/null 2>&1 || skip "the documents' commands: this is no checkout of git"
unset MAKEFLAGS MFLAGS MAKEOVERRIDES # of the make that runs this test

work=$(mktemp -d)
spaced=$(mktemp -d "$(dirname "$work")/weftio documents.XXXXXX")
trap 'rm -rf "$work" "$spaced"' EXIT
chmod 755 "$work" "$spaced" # pages run as nobody

# runs_pages FOLDER PAGE...: in clones named FOLDER/weftio.
runs_pages() {
    python3 "$documents" --source "$source" --work "$1" --stage "$1/stage" --patience $patience "${@:2}"
}

# clone FOLDER: what git has or would have, with changes that are not committed yet, and with what `make demo` and `make` build.
clone() {
    local target log=$1/log begin
    mkdir "$1/pristine" "$1/weftio"
    git ls-files -co --exclude-standard -z | while IFS= read -rd '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
        tar -c --null -T - | tar -x -C "$1/pristine"
    cp -a "$1/pristine/." "$1/weftio"
    for target in demo all; do
        begin=$SECONDS
        (cd "$1/weftio" && make $target) >"$log" 2>&1
        check "make $target in a fresh clone, $1/weftio" 0 $? || { tail -20 "$log"; return 1; }
        echo "    took $((SECONDS - begin)) s"
        mkdir -p "$1/stage/$target"
        cp -a "$1/weftio/build" "$1/stage/$target/build"
    done
}

# A page that is wrong is a failure, and its report says where.
mkdir "$work/wrong" "$work/wrong/pristine"
# wrong WHAT EXPECTED: the page on standard input.
wrong() {
    local said
    cat >"$work/wrong/page.md"
    said=$(python3 "$documents" --source "$work/wrong" --work "$work/wrong" --patience 2 page.md)
    check "$1: exit status" 1 $? || echo "$said"
    check_has "$1" "FAILED: page.md$2" "$said"
}
wrong "a command that fails" ':2: false: exit status 1' <<<$'```sh\nfalse\n```'
wrong "a command behind one that succeeds" ':3: ls /nowhere # is not there: exit status 2' <<<$'```sh\ntrue\nls /nowhere # is not there\n```'
wrong "a block without a language" ':1: the block has language ""' <<<$'```\ntrue\n```'
wrong "other output" ':2: echo 7 b: prints something else' <<<$'```console\n$ echo 7 b\n7 a\n```'
wrong "output that is missing" ':2: echo a: prints something else' <<<$'```console\n$ echo a\na\nb\n```'
wrong "a package that is not there" ':2: apt has no package weftio-nowhere' <<<$'```sh\nsudo apt install weftio-nowhere\n```'
wrong "a mark of nothing" ':1: the mark selects "b", which is in no command' <<<$'<!-- test: skip "b": no -->\n```sh\ntrue\n```'
wrong "a mark that is none" ':1: no such mark: "skpi: x"' <<<$'<!-- test: skpi: x -->\n```sh\ntrue\n```'
wrong "a mark far from a block" ':1: a mark must stand' <<<$'<!-- test: as root -->\ntext\n```sh\ntrue\n```'
wrong "a script that does not run it" ':2: tests/scripts/x.sh does not run this page' <<<$'<!-- test: run by x.sh -->\n```sh\ntrue\n```'
wrong "a command in the background" ':3: sleep 0; false: exit status 1' <<<$'<!-- test: beside "false" -->\n```sh\nsleep 0; false\ntrue\n```'
wrong "one that does not end" ':3: sleep 60: is late' <<<$'<!-- test: beside "sleep" -->\n```sh\nsleep 60\n```'
wrong "a step of a recipe" ':3: false: exit status 1' <<<$'```yaml\n- run: |\n    false\n- run: true\n```'
wrong "a job in a recipe" ':4: wait %1: a runner' <<<$'```yaml\n- run: |\n    true &\n    wait %1\n```'
wrong "what is given" ':2: what is given failed' <<<$'<!-- test: given false -->\n```sh\ntrue\n```'
cat >"$work/wrong/page.md" <<'END'
<!-- test: with NAME = f -->
<!-- test: ends 3 "exit 3" -->
<!-- test: skip "shutdown": it would end the machine -->
```sh
mkdir NAME && cd NAME
(exit 3)
shutdown now
```
<!-- test: beside "in one" -->
<!-- test: stop -->
```sh
sleep 60         # in one terminal
[ $(basename $PWD) = f ]
```
```console
$ echo took 17.5 s; echo; echo end
took 3 s
...
end
```
END
check "a page that is right" "page.md: 3 blocks, 5 commands run, 3 lines of output compared, 1 skipped (it would end the machine)" \
    "$(python3 "$documents" --source "$work/wrong" --work "$work/wrong" page.md)"

clone "$work" || finish
said=$(runs_pages "$work" README.md docs/*.md docs/*.1 meson-compat/README.md meson-compat/*/README.md)
check "every page's commands" 0 $?
echo "$said"
clone "$spaced" || finish
said=$(runs_pages "$spaced" --skip "weftio-run: refuses a path with a blank" README.md)
check "README.md in a clone with a blank in its path" 0 $?
echo "$said"
check "weftio-run says what it cannot do there" "weftio-run: $spaced/weftio/build/lib/verbs/libweftio-verbs-preload.so: \
a path with a space or a colon cannot be preloaded; move Weftio to another folder, or install it into one: make install PREFIX=..." "$("$spaced/weftio/build/apps/weftio-run" true 2>&1)"
finish
