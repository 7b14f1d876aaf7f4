#!/usr/bin/env python3
"""Writes kernels of random structured control flow with barriers in it, from a seed: flow_programs.py SEED COUNT.

Every condition is the same for all lanes, so each program is legal and has one outcome on any device with any number of lanes.
"""
import random
import sys

CONDITIONS = ("(x >> {} & 1u)", "(x >> {} & 3u) == 0", "(x >> {} & 3u) != 0", "(x >> {} & 7u) > 2")
SIMPLE = ("FLOW_WORK({}u);", "FLOW_LANE_0({}u);", "weftio_block_barrier();", "FLOW_NEXT({}u);", "FLOW_NEIGHBOR({}u);",
          "FLOW_STRIDE({}u);")
LOOPS = ("for (weftio_u32 {i} = 0; {i} < {n}u; ++{i}) {{", "do {{", "for (;;) {{")
HEADS = {"do {{": "", "for (;;) {{": "    if ({i}++ == {n}u)\n        break;"}


class Program:
    def __init__(self, seed, name):
        self.random, self.name, self.parts, self.left, self.functions = random.Random(seed), name, 0, 26, []

    def part(self):
        self.parts += 1
        return self.parts

    def condition(self):
        return self.random.choice(CONDITIONS).format(self.random.randint(3, 20))

    def leave(self, in_function):
        return "return x;" if in_function else "{ FLOW_FINISH(); return; }"

    def statement(self, depth, in_loop, calls):
        self.left -= 1
        nested = ["branch"] * 6 + ["loop"] * 6 + ["call"] * (2 if calls < 2 else 0)
        kinds = ["simple"] * 10 + (nested if depth and self.left > 0 else []) + ["continue", "continue", "break"] * in_loop
        kind = self.random.choice(kinds + ["return"])
        if kind == "simple":
            return [self.random.choice(SIMPLE).format(self.part())]
        if kind == "continue" or kind == "break":
            return [f"if ({self.condition()})", f"    {kind};"]
        if kind == "return":
            return [f"if ({self.condition()} && (x >> 21 & 3u) == 0)", "    " + self.leave(calls)]
        if kind == "call":
            return [f"x = {self.function(depth - 1, calls + 1)}(world, x);"]
        return self.branch(depth, in_loop, calls) if kind == "branch" else self.loop(depth, calls)

    def body(self, depth, in_loop, calls, count):
        lines = [line for _ in range(count) for line in self.statement(depth, in_loop, calls)]
        return ["    " + line for line in lines]

    def branch(self, depth, in_loop, calls):
        lines = [f"if ({self.condition()}) {{"] + self.body(depth - 1, in_loop, calls, self.random.randint(1, 4))
        if self.random.random() < 0.4:
            lines += ["} else {"] + self.body(depth - 1, in_loop, calls, self.random.randint(1, 3))
        return lines + ["}"]

    def loop(self, depth, calls):
        form, names = self.random.choice(LOOPS), {"i": f"i{self.part()}", "n": self.random.randint(2, 5)}
        lines = [] if "{i}" in form else ["weftio_u32 {i} = 0;".format(**names)]
        head = HEADS.get(form, "").format(**names).split("\n")
        lines += [form.format(**names)] + [line for line in head if line] + [f"    FLOW_NEXT({self.part()}u);"]
        lines += self.body(depth - 1, True, calls, self.random.randint(2, 5))
        return lines + [("}} while (++{i} < {n}u);" if form == "do {{" else "}}").format(**names)]

    def function(self, depth, calls):
        name = f"{self.name}_part{self.part()}"
        body = self.body(depth, False, calls, self.random.randint(1, 4))
        self.functions.append([f"WEFTIO_FN weftio_u32 {name}(WEFTIO_GLOBAL struct flow_world *world, weftio_u32 x)", "{",
                               "    (void)world;"] + body + ["    return x;", "}"])
        return name

    def text(self):
        body = self.body(4, False, 0, 6)
        functions = [line for function in self.functions for line in function]
        head = [f"WEFTIO_KERNEL void {self.name}(WEFTIO_GLOBAL struct flow_world *world)", "{", "    weftio_u32 x = world->state;"]
        head += [f"    for (weftio_u32 i = 0; i < {self.random.randint(2, 4)}u; ++i) {{", f"        FLOW_NEXT({self.part()}u);",
                 f"        FLOW_COUNT({self.part()}u);", "    }"]
        return "\n".join(functions + head + body + ["    FLOW_FINISH();", "}"])


seed, count = int(sys.argv[1]), int(sys.argv[2])
for at in range(count):
    print(Program(seed + at, f"flow_{at}").text())
