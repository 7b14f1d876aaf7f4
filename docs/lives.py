#!/usr/bin/env python3
"""Draws docs/regular-life.svg and docs/persistent-life.svg: how long memory of a GPU, its mappings and its keys live.

    docs/lives.py [FOLDER]      writes both files; without FOLDER, beside this script
"""
import pathlib
import sys
from xml.sax.saxutils import escape

WIDTH, LEFT, STEP, LANE = 900, 215, 110, 34
COLORS = {"process": "#e4e8ec", "memory": "#ffd98a", "mapping": "#cfe3f7", "keys": "#cdebc8", "holder": "#eadcf5"}


class Picture:
    def __init__(self, title, moments):
        self.title, self.moments = title, moments
        self.lanes, self.marks = [], []

    def lane(self, name, kind, begin, end, note=""):
        self.lanes.append((name, kind, begin, end, note))

    def arrow(self, moment, from_lane, to_lane, color):
        self.marks.append((moment, from_lane, to_lane, color))

    def y(self, lane):
        return 74 + lane * LANE

    def svg(self):
        height = self.y(len(self.lanes)) + 34
        out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
               f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
               f"<title>{escape(self.title)}</title>",
               '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
               'orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>',
               f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>']
        bottom = self.y(len(self.lanes))
        for at, words in enumerate(self.moments):
            x = LEFT + at * STEP
            for row, word in enumerate(words):
                out.append(f'<text x="{x}" y="{24 + 16 * row}" text-anchor="middle" font-size="12">{escape(word)}</text>')
            out.append(f'<line x1="{x}" y1="62" x2="{x}" y2="{bottom}" stroke="#bbb" stroke-dasharray="3,4"/>')
        for at, (name, kind, begin, end, note) in enumerate(self.lanes):
            y, x, width = self.y(at), LEFT + begin * STEP, (end - begin) * STEP
            out.append(f'<text x="16" y="{y + 18}">{escape(name)}</text>')
            out.append(f'<rect x="{x:g}" y="{y + 4}" width="{width:g}" height="20" rx="3" fill="{COLORS[kind]}" '
                       'stroke="#456"/>')
            out.append(f'<text x="{x + 7:g}" y="{y + 18}" font-size="11.5">{escape(note)}</text>')
        for moment, from_lane, to_lane, color in self.marks:
            x = LEFT + moment * STEP
            y = self.y(from_lane) + (24 if to_lane > from_lane else 4)
            to = self.y(to_lane) + (3 if to_lane > from_lane else 25)
            out.append(f'<line x1="{x:g}" y1="{y}" x2="{x:g}" y2="{to}" stroke="{color}" stroke-width="2" '
                       'marker-end="url(#head)"/>')
        out.append(f'<text x="16" y="{bottom + 22}" font-size="12" fill="#456">time</text>')
        out.append(f'<line x1="50" y1="{bottom + 18}" x2="{WIDTH - 20}" y2="{bottom + 18}" stroke="#456" '
                   'marker-end="url(#head)"/>')
        return "\n".join(out + ["</svg>"]) + "\n"


def regular():
    made = Picture("Regular life: memory of a GPU ends with its context",
                   [["cudaMalloc()"], ["register"], ["peers write"], ["cudaFree(), or the", "context ends"],
                    ["other memory", "at the address"], ["exit"]])
    made.lane("process and context", "process", -0.3, 5, "first program")
    made.lane("memory of the GPU", "memory", 0, 3, "an allocation of the context")
    made.lane("keys", "keys", 1, 3, "end with it: seen_frees")
    made.lane("other memory", "memory", 4, 5, "new keys only")
    made.lane("successor", "process", 5.1, 6, "begins anew")
    return made


def persistent():
    made = Picture("Persistent life: memory of a GPU ends with its last holder and mapping",
                   [["make()"], ["map()", "register"], ["send() to", "receive()"], ["first program", "ends"],
                    ["map()", "register"], ["last holder", "and mapping go"]])
    made.lane("first program", "process", -0.3, 3, "")
    made.lane("its descriptor", "holder", 0, 3, "memory_holder")
    made.lane("its mapping", "mapping", 1, 3, "its addresses")
    made.lane("its keys", "keys", 1.1, 3, "end with it")
    made.lane("memory of the GPU", "memory", 0, 5, "of no context and no process")
    made.lane("successor's descriptor", "holder", 2, 4.6, "memory_holder")
    made.lane("successor's mapping", "mapping", 4, 5, "other addresses")
    made.lane("successor's keys", "keys", 4.1, 5, "told to peers")
    made.arrow(2, 1, 5, "#639")
    return made


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    (folder / "regular-life.svg").write_text(regular().svg())
    (folder / "persistent-life.svg").write_text(persistent().svg())


if __name__ == "__main__":
    main()
