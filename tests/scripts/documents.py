#!/usr/bin/env python3
"""Runs the command blocks of our documents, page by page and in page order, each page in a fresh clone of its own.

    documents.py --source FOLDER --work FOLDER [--stage FOLDER] PAGE...

A block is a fence of Markdown, or the section EXAMPLES of a manual page. Its language says what becomes of it:

    sh                     each command is run, and must succeed
    console                "$ COMMAND" is run, and must print the lines below it; each number stands for any number, "..." for any lines
    yaml                   each "- run:" of a CI recipe is run by a shell of its own
    text                   not commands
    c, cpp, cuda, cmake, meson, make    sources, which consumer.sh builds

Any other language, or none, is a failure. Commands run as nobody where we are root. apt installs nothing: its packages are looked up.
Marks in front of a block, which readers do not see, say what a command needs. In Markdown each is a line <!-- test: MARK -->, in a
manual page a line .\\" test: MARK. "PART" selects the commands that contain it, and must select one.

    as root                the block runs as root, in namespaces of its own; skipped where we are not root
    given COMMAND          what the page takes for granted: runs before the block, as the block's user
    with WORD = TEXT       TEXT takes the place of WORD in the commands
    ends N "PART"          the exit status is N
    beside "PART"          in a terminal of its own: in the background
    after "PART" COMMAND   repeated until it succeeds, before the next command runs
    stop                   what still runs at the end of the block gets SIGINT, and must end with status 0 or 130. Without this mark it must
                           end by itself
    skip: WHY              the block is not run
    skip "PART": WHY       the command is not run
    run by SCRIPT          tests/scripts/SCRIPT runs the block; it must name the page

The first `make` of a page takes --stage/TARGET/build, which the same command has built from nothing in the same folder.
"""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field

SOURCES = {"c", "cpp", "cuda", "cmake", "meson", "make"}
LANGUAGES = SOURCES | {"sh", "console", "yaml", "text"}
APT = re.compile(r"^(?:sudo )?apt(?:-get)? (?:-\S+ )*(install|update)\b(.*)")

JOB = re.compile(r"\b(?:wait|kill|fg|bg|disown)\b[^;|&#]*\s%[\w%+-]")  # names a job


class Wrong(Exception):
    """A page that cannot be run as it is: its text says where and why."""


@dataclass
class Command:
    line: int
    text: str
    output: list = field(default_factory=list)  # of a console: the lines below it
    terminal: str = ""  # of a console: what stands in front of "$"
    background: bool = False
    status: int = 0
    after: list = field(default_factory=list)
    skip: str = ""


@dataclass
class Block:
    page: str
    line: int
    language: str
    commands: list = field(default_factory=list)
    given: list = field(default_factory=list)
    root: bool = False
    stop: bool = False
    skip: str = ""
    run_by: str = ""


# Reading pages ------------------------------------------------------------------------------------------------------------------------


def fences(page, text):
    """Yields (line, language, marks, lines) of each fence; lines are (number, text)."""
    marks, inside, indent = [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.match(r"^(\s*)```(.*)$", line)
        if fence and inside is None:
            inside, indent = (number, fence[2].strip(), marks, []), fence[1]
        elif fence:
            yield inside
            marks, inside = [], None
        elif inside is not None:
            inside[3].append((number, line.removeprefix(indent)))
        elif mark := re.match(r"^\s*<!-- test: (.*) -->$", line):
            marks.append((number, mark[1]))
        elif marks and line.strip():
            raise Wrong(f"{page}:{marks[0][0]}: a mark must stand in front of a block")
    if inside is not None:
        raise Wrong(f"{page}:{inside[0]}: this block has no end")


def examples(text):
    """The same for the section EXAMPLES of a manual page, as one block."""
    marks, lines, begin, verbatim = [], [], 0, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(".SH"):
            begin = number if line == ".SH EXAMPLES" else 0
        elif not begin:
            continue
        elif mark := re.match(r'^\.\\" test: (.*)$', line):
            marks.append((number, mark[1]))
        elif line in (".nf", ".fi"):
            verbatim = line == ".nf"
        elif verbatim or line.startswith(".B "):
            lines.append((number, line.removeprefix(".B ").replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\")))
    if lines:
        yield lines[0][0], "sh", marks, lines


def is_whole(text):
    return not text.endswith("\\") and subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True).returncode == 0


def shell_commands(page, lines):
    commands, kept = [], None
    for number, line in lines:
        kept = Command(kept.line, kept.text + "\n" + line) if kept else Command(number, line)
        if not kept.text.strip() or kept.text.lstrip().startswith("#"):
            kept = None
        elif is_whole(kept.text):
            commands.append(kept)
            kept = None
    if kept:
        raise Wrong(f"{page}:{kept.line}: no shell reads this command: {kept.text}")
    return commands


def console_commands(page, lines):
    commands = []
    for number, line in lines:
        if prompt := re.match(r"^(\w*)\$ (.*)$", line):
            commands.append(Command(number, prompt[2], terminal=prompt[1]))
        elif not commands:
            raise Wrong(f'{page}:{number}: output before the first "$ COMMAND"')
        else:
            commands[-1].output.append(line)
    return commands


def recipe_steps(lines):
    """The lines of each "- run:" of a CI recipe."""
    steps, deep = [], None
    for number, line in lines:
        if run := re.match(r"^(\s*)- run: (.*)$", line):
            deep = len(run[1]) + 1
            steps.append([] if run[2] == "|" else [(number, run[2])])
        elif deep is not None and line.strip() and len(line) - len(line.lstrip()) >= deep:
            steps[-1].append((number, line.strip()))
        else:
            deep = None
    return steps


def selected(block, where, part):
    found = [command for command in block.commands if part in command.text]
    if not found:
        raise Wrong(f'{where}: the mark selects "{part}", which is in no command of the block')
    return found


def substitute(block, where, mark):
    word, equals, text = mark.partition(" = ")
    if not equals:
        raise Wrong(f'{where}: "with {mark}" is not "with WORD = TEXT"')
    for command in selected(block, where, word):
        command.text = command.text.replace(word, text)


def apply_mark(block, where, mark):
    kind, _, rest = mark.partition(" ")
    part = re.match(r'^(?:\d+ )?"([^"]*)"(:?) ?(.*)$', rest)
    if mark == "as root":
        block.root = True
    elif mark == "stop":
        block.stop = True
    elif mark.startswith("skip: "):
        block.skip = rest
    elif mark.startswith("run by "):
        block.run_by = rest.removeprefix("by ")
    elif kind == "given":
        block.given.append(rest)
    elif kind == "with":
        substitute(block, where, rest)
    elif part and kind in ("ends", "beside", "after", "skip"):
        for command in selected(block, where, part[1]):
            if kind == "ends":
                command.status = int(rest.split()[0])
            elif kind == "beside":
                command.background = True
            elif kind == "after":
                command.after.append(part[3])
            else:
                command.skip = part[3]
    else:
        raise Wrong(f'{where}: no such mark: "{mark}"')


def blocks_of(source, page):
    """All blocks of a page that have commands or a mark; and how many are sources or texts."""
    text = (source / page).read_text()
    blocks, others = [], 0
    for line, language, marks, lines in examples(text) if page.endswith(".1") else fences(page, text):
        if language not in LANGUAGES:
            raise Wrong(f'{page}:{line}: the block has language "{language}"; name one of: {", ".join(sorted(LANGUAGES))}')
        if language in SOURCES or language == "text":
            if marks:
                raise Wrong(f"{page}:{marks[0][0]}: a mark in front of a block of {language}, which is not run")
            others += 1
            continue
        if language == "yaml":
            shells = [shell_commands(page, step) for step in recipe_steps(lines)]
            # Runs the step with job control, which a runner's shell may lack: what depends on it would pass here.
            for command in (command for step in shells for command in step if JOB.search(command.text)):
                raise Wrong(f"{page}:{command.line}: {command.text}: a runner's shell may have no job control; write $! instead of %N")
        else:
            shells = [console_commands(page, lines) if language == "console" else shell_commands(page, lines)]
        # Marks of a recipe are for the step that has the command; what is not about one command is for the first step.
        made = [Block(page, line, language, commands) for commands in shells]
        for number, mark in marks:
            wanted = [block for block in made if (part := re.search(r'"([^"]*)"|^with (\S+)', mark)) and
                      any((part[1] or part[2]) in command.text for command in block.commands)]
            apply_mark((wanted or made)[0], f"{page}:{number}", mark)
        blocks += made
        if not all(block.commands for block in made):
            raise Wrong(f"{page}:{line}: no command in this block")
    return blocks, others


# Running them -------------------------------------------------------------------------------------------------------------------------

# What each block runs in: the shell of a reader, whose folder and PATH the next block has too.
SHELL = r"""
set -m
work=%(work)s clone=%(clone)s stage=%(stage)s
cd "$(cat "$work/cwd")" || exit 1
PATH=$(cat "$work/path")
sudo() { "$@"; }
keep() { pwd >"$work/cwd"; echo "$PATH" >"$work/path"; }
trap keep EXIT
began() { echo "began $1" >>"$work/log"; }
ended() { echo "ended $1 $2" >>"$work/log"; [ "$2" = "$3" ] || exit 1; }
# until_true NUMBER COMMAND
until_true() {
    local try
    for try in $(seq $((10 * %(patience)d))); do
        eval "$2" >/dev/null 2>&1 </dev/null && return
        sleep 0.1
    done
    echo "late $1" >>"$work/log"
    exit 1
}
take_stage() {
    [ -e "$work/stage.$1" ] && return
    rm -rf "$clone/build" && cp -a "$stage/$1/build" "$clone/build" && touch "$work/stage.$1"
    [ "$1" != all ] || touch "$work/stage.demo"
}
# over NUMBER PROCESS: the end of a background command.
over() {
    local try
    [ -z "$stop" ] || kill -INT -- "-$2" 2>/dev/null
    for try in $(seq $((10 * %(patience)d))); do
        kill -0 "$2" 2>/dev/null || break
        sleep 0.1
    done
    if kill -0 "$2" 2>/dev/null; then
        kill -KILL -- "-$2"
        echo "late $1" >>"$work/log"
        exit 1
    fi
    wait "$2"
    set -- "$1" $?
    [ -z "$stop" ] || [ $2 != 130 ] || set -- "$1" 0
    ended "$1" "$2" 0
}
others_over() {
    local process
    for process in $(jobs -p); do
        case " $ours " in *" $process "*) continue ;; esac
        over background $process
    done
}
ours=''
"""

# The machine of a page, as root: interfaces with something at their other ends, a /dev/shm of its own.
WORLD = r"""
ip link set lo up || exit 1
for name in eth0 eth1 veth0; do
    ip link add $name type veth peer name far-$name && ip link set far-$name up && ip link set $name up || exit 1
done
mount -t tmpfs -o mode=1777 none /dev/shm || exit 1
"""


def stage_of(text):
    """The stage that a `make` of a page begins with."""
    if not (made := re.match(r"^(?:sudo )?make(?:\s+(demo|install))?(?=\s|$|;|&)(?!\s+[a-z])", text)):
        return ""
    return "demo" if made[1] == "demo" else "all"


class Page:
    def __init__(self, options, page):
        self.page, self.options = page, options
        self.folder = options.work / "page"
        self.count, self.reasons, self.failures = Counter(), Counter(), []
        self.commands = {}  # by number, what run() shall find in the log
        self.is_root = os.geteuid() == 0

    def fails(self, where, why):
        self.failures.append(f"{where}: {why}")

    def skips(self, why):
        self.count["skipped"] += 1
        self.reasons[why] += 1

    def look_up(self, command, packages):
        for package in packages.split("#")[0].split():
            if package.startswith("-"):
                continue
            self.count["packages looked up"] += 1
            said = subprocess.run(["apt-cache", "policy", package], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout
            if not re.search(r"(Installed|Candidate): [^(]", said):
                self.fails(f"{self.page}:{command.line}", f"apt has no package {package}")

    def script_of(self, block):
        """The shell script of a block; writes each command to a file of its own."""
        lines = [f"stop={'yes' if block.stop else ''}"]
        for command in block.commands:
            part, _, why = self.options.skip.partition(": ")
            if part and part in command.text:
                command.skip = why
            if command.skip:
                self.skips(command.skip)
                continue
            if apt := APT.match(command.text):
                self.look_up(command, apt[2] if apt[1] == "install" else "")
                continue
            number = len(self.commands)
            self.commands[number] = (block, command)
            (self.folder / f"command.{number}").write_text(command.text + "\n")
            if self.options.stage and (stage := stage_of(command.text)):
                lines.append(f"take_stage {stage} || exit 1")
            run = f'. "$work/command.{number}" >"$work/output.{number}" 2>&1 </dev/null'
            if command.background:
                lines += [f"began {number}", f"({run}) & process_{number}=$! ours=\"$ours $!\""]
            else:
                lines += [f"began {number}", run, f"ended {number} $? {command.status}"]
            lines += [f"until_true {number} {shlex.quote(each)}" for each in command.after]
        lines += [f"over {number} $process_{number}" for number, (other, command) in self.commands.items()
                  if other is block and command.background]
        lines.append("others_over")
        return "\n".join(lines) + "\n"

    def is_run(self, block):
        """Counts a block that is not run, for whatever reason."""
        if block.run_by:
            script = self.options.source / "tests/scripts" / block.run_by
            if not script.exists() or self.page not in script.read_text():
                self.fails(f"{self.page}:{block.line}", f"tests/scripts/{block.run_by} does not run this page: it does not name it")
            self.count[f"blocks run by {block.run_by}"] += 1
        elif block.skip:
            self.skips(block.skip)
        elif block.root and not self.is_root:
            self.skips("needs root")
        else:
            return True
        return False

    def prepare(self, blocks):
        """Writes the script of the page: its world, its clone, its blocks."""
        options = self.options
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.folder.chmod(0o777)
        os.umask(0o022)
        (self.folder / "home").mkdir()
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        if self.page.endswith(".1"):  # installed
            path = f"{options.clone}/build/apps:{path}"
        (self.folder / "path").write_text(path + "\n")
        (self.folder / "cwd").write_text(f"{options.clone}\n")
        shell = SHELL % {"work": shlex.quote(str(self.folder)), "clone": shlex.quote(str(options.clone)),
                         "stage": shlex.quote(str(options.stage or "")), "patience": options.patience}
        user = "setpriv --reuid=nobody --regid=nogroup --clear-groups " if self.is_root else ""
        home = shlex.quote(str(self.folder / "home"))
        clone = shlex.quote(str(options.clone))
        lines = [WORLD if self.is_root else "", f"rm -rf {clone} && mkdir {clone} || exit 1"]
        if self.is_root:
            lines.append(f"chown -R nobody:nogroup {home} {clone}")
        lines.append(f"{user}cp -a {shlex.quote(str(options.pristine))}/. {clone} || exit 1")
        if self.page.endswith(".1") and options.stage:
            lines.append(f"{user}bash {shlex.quote(str(self.folder / 'stage'))} || exit 1")
            (self.folder / "stage").write_text(shell + "take_stage all\n")
        for index, block in enumerate(blocks):
            if not self.is_run(block):
                continue
            files = {"given": "set -e\n" + "\n".join(block.given) + "\n", "block": self.script_of(block)}
            for name, text in files.items():
                (self.folder / f"{name}.{index}").write_text(shell + text)
            as_user = "" if block.root else user
            if block.given:
                output = shlex.quote(str(self.folder / f"given-output.{index}"))
                lines.append(f'{as_user}env HOME={home} bash {shlex.quote(str(self.folder / f"given.{index}"))} >{output} 2>&1 || {{ echo "given {index}" >>'
                             f'{shlex.quote(str(self.folder / "log"))}; exit 1; }}')
            lines.append(f'{as_user}env HOME={home} bash {shlex.quote(str(self.folder / f"block.{index}"))} || exit 1')
        (self.folder / "log").touch()
        for name in ("log", "cwd", "path"):
            (self.folder / name).chmod(0o666)
        (self.folder / "page").write_text("umask 022\n" + "\n".join(lines) + "\n")

    def run(self, blocks):
        self.prepare(blocks)
        if not self.commands:
            return
        words = ["bash", str(self.folder / "page")]
        if self.is_root:
            words = ["unshare", "--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc", *words]
        output = self.folder / "words"
        with output.open("wb") as file:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True, cwd="/")
            try:
                process.wait(timeout=8 * self.options.patience)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                self.fails(self.page, f"did not end within {8 * self.options.patience} s")
        self.judge(blocks, process.returncode, output)

    def judge(self, blocks, status, output):
        """Reads the log of a run: what each command said, and how it ended."""
        before = len(self.failures)
        log = [line.split() for line in (self.folder / "log").read_text().splitlines()]
        ended = {words[1]: int(words[2]) for words in log if words[0] == "ended"}
        began = [words[1] for words in log if words[0] == "began"]
        for words in log:
            if words[0] == "given":
                block = blocks[int(words[1])]
                self.fails(f"{self.page}:{block.line}", "what is given failed:" + self.tail(f"given-output.{words[1]}"))
            elif words[0] == "late":
                self.fails_command(words[1], "is late: did not end, or what its mark waits for did not come")
        for number in began:
            command = self.commands[int(number)][1]
            if number not in ended:
                if not any(words == ["late", number] for words in log):
                    self.fails_command(number, "did not end")
            elif ended[number] != command.status:
                self.fails_command(number, f"exit status {ended[number]}" + (f" instead of {command.status}" if command.status else ""))
            else:
                self.count["commands run"] += 1
                self.compare(number, command)
        if ended.get("background"):
            self.fails(self.page, f"what a command left in the background ended with status {ended['background']}")
        if status and len(self.failures) == before:
            self.fails(self.page, f"its shell ended with status {status}:" + self.tail(output.name))
        if left := len(self.commands) - len(began):
            self.count["commands not reached"] += left

    def tail(self, name):
        path = self.folder / name
        lines = path.read_text(errors="replace").splitlines()[-20:] if path.exists() else []
        return "".join(f"\n    {line}" for line in lines)

    def fails_command(self, number, why):
        if number == "background":
            self.fails(self.page, "what a command left in the background " + why)
            return
        command = self.commands[int(number)][1]
        self.fails(f"{self.page}:{command.line}: {command.text}", why + self.tail(f"output.{number}"))

    def compare(self, number, command):
        if not command.output:
            return
        seen = (self.folder / f"output.{number}").read_text(errors="replace").splitlines()
        pattern = "\n".join("(.*)" if line == "..." else re.escape(masked(line.removeprefix("^C"))) for line in command.output)
        self.count["lines of output compared"] += len(command.output)
        if not re.fullmatch(pattern, "\n".join(masked(line) for line in seen), re.DOTALL):
            self.fails_command(number, "prints something else than the page shows:")

    def report(self, blocks, others):
        words = [f"{len(blocks)} blocks"]
        words += [f"{number} {what}" for what, number in self.count.items() if what != "skipped"]
        words += [f"{number} skipped ({why})" for why, number in self.reasons.items()]
        if others:
            words.append(f"{others} sources or texts")
        print(f"{self.page}: {', '.join(words)}", flush=True)
        for failure in self.failures:
            print(f"FAILED: {failure}", flush=True)


def masked(line):
    return re.sub(r"\d[\d.,]*", "N", line).rstrip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True, help="where the pages are")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="a folder; its `pristine` is a clone, and pages run in `weftio`")
    parser.add_argument("--stage", type=pathlib.Path, help="a folder: its demo/build and all/build are what make has built in `weftio`")
    parser.add_argument("--patience", type=int, default=60, help="how many seconds a command may take")
    parser.add_argument("--skip", default="", metavar="PART: WHY", help="skip commands that contain PART")
    parser.add_argument("pages", nargs="+")
    options = parser.parse_args()
    options.clone, options.pristine = options.work / "weftio", options.work / "pristine"
    failed = 0
    for name in options.pages:
        try:
            blocks, others = blocks_of(options.source, name)
        except Wrong as wrong:
            print(f"FAILED: {wrong}", flush=True)
            failed += 1
            continue
        page = Page(options, name)
        page.run(blocks)
        page.report(blocks, others)
        failed += len(page.failures)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
