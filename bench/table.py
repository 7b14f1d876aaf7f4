"""The table and JSON of bench/common/table.hpp for Python programs, and their command line parser."""

import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build" if (HERE / "CMakeLists.txt").is_file() else HERE.parent  # of this checkout; an unpacked bundle is its own
KEYS = ("name", "value", "unit", "low", "high", "rounds", "peer", "ratio", "goal", "met", "machine")
LESS_IS_BETTER = ("ns", "us", "ms", "s", "bytes", "MiB", "MiB an hour", "frames", "waits")


class Words(argparse.ArgumentParser):
    """Parser that reports a wrong option in one sentence, with exit status 2."""

    def error(self, message):
        text = " ".join(message.split())
        print(f"weftio: {self.prog}: {text}; --help lists what there is", file=sys.stderr)
        sys.exit(2)


def writable(text):
    """Checks that a file can be written, before minutes of measuring."""
    try:
        with open(text, "a", encoding="utf-8"):
            return pathlib.Path(text)
    except OSError as failure:
        raise argparse.ArgumentTypeError(f"{text} cannot be written ({failure.strerror}); name a file that can be made")


def find(folder, program):
    """The path of a program in a build folder or an unpacked bundle; None if it is not there."""
    in_bundle = {"gpu_bench": "weftio-gpu-bench"}.get(program, program)
    places = (folder / "bench" / program, folder / "bin" / in_bundle, folder / program, folder / in_bundle)
    return next((place for place in places if place.is_file() and os.access(place, os.X_OK)), None)


def find_peer(folder, program):
    """The path of a program of others: the bundle's, or the machine's; None if there is none."""
    return find(folder, program) or shutil.which(program)


def two_cores():
    """The first two cores that this process may use; no two hyperthreads of one core, if it may use others."""
    cores, seen = sorted(os.sched_getaffinity(0)), set()
    for core in cores:
        try:
            siblings = pathlib.Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text(encoding="ascii")
        except OSError:
            siblings = str(core)
        if siblings not in seen:
            seen.add(siblings)
            if core != cores[0]:
                return cores[0], core
    return (*cores, *cores)[:2]


def goals():
    return json.loads((HERE / "goals.json").read_text(encoding="utf-8"))["goals"]


def is_met(goal, value, ratio):
    of, way, limit = goal.split()
    known = {"value": value, "ratio": ratio}[of]
    return known is not None and (known >= float(limit) if way == ">=" else known <= float(limit))


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown processor")
    today = time.strftime("%Y-%m-%d", time.gmtime())
    return f"{os.cpu_count()} cores, {model}, Linux {os.uname().release}, {today}, load {os.getloadavg()[0]:.2f}"


def digits(value):
    if value is None:
        return "-"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


class Table:
    """Rows, each with a value for every round."""

    def __init__(self, program):
        self.program, self.values, self.rows, self.pairs = program, {}, [], {}
        self.goals, self.machine = goals().get(program, {}), machine()

    def add(self, name, unit, values, peer=None):
        """Adds a row. `peer` names a row that was measured in the same rounds and has been added before."""
        values = [float(value) for value in values]
        if not values or not all(map(math.isfinite, values)):
            raise SystemExit(f"{self.program}: {name} was not measured")
        pairs = [own / other for own, other in zip(values, self.values[peer], strict=True) if other] if peer else []
        value, ratio = statistics.median(values), statistics.median(pairs) if pairs else None
        goal = self.goals.get(name, {}).get("goal")
        self.values[name], self.pairs[name] = values, pairs
        self.rows.append(dict(zip(KEYS, (name, value, unit, min(values), max(values), len(values), peer, ratio, goal,
                                         is_met(goal, value, ratio) if goal else None, self.machine))))

    def print(self):
        print(f"{self.machine}\n{self.program:50} {'median':>10} {'best':>10} {'worst':>10} {'unit':6} {'rounds':>6}  "
              f"{'ratio to its peer':22} goal")
        for row in self.rows:
            ends = (row["low"], row["high"]) if row["unit"] in LESS_IS_BETTER else (row["high"], row["low"])
            pairs = self.pairs[row["name"]]
            ratio = f"{digits(row['ratio'])} ({digits(min(pairs))}-{digits(max(pairs))})" if pairs else "-"
            goal = f"{row['goal']}: {'met' if row['met'] else 'NOT MET'}" if row["goal"] else ""
            print(f"{row['name']:50} {digits(row['value']):>10} {digits(ends[0]):>10} {digits(ends[1]):>10} {row['unit']:6} "
                  f"{row['rounds']:6}  {ratio:22} {goal}")
        wanted = [row for row in self.rows if row["goal"]]
        missed = [row["name"] for row in wanted if not row["met"]]
        if wanted:
            print(f"{len(wanted) - len(missed)} of {len(wanted)} goals met" + ("; not met: " + ", ".join(missed) if missed else ""))

    def finish(self, path=None):
        """Prints, and writes the rows to `path`."""
        self.print()
        if path:
            document = {"schema": 1, "program": self.program, "rows": self.rows}
            path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
