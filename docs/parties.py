#!/usr/bin/env python3
"""Draws docs/three-parties.svg and docs/four-parties.svg: who writes data and flag, who reads them, and what a flush pushes.

    docs/parties.py [FOLDER]      writes both files; without FOLDER, beside this script
"""
import pathlib
import sys
from xml.sax.saxutils import escape

WIDTH = 900
COLORS = {"writer": "#cfe3f7", "memory": "#ffd98a", "reader": "#cdebc8"}
INK = {"write": "#247", "read": "#263", "flush": "#b33"}


class Picture:
    def __init__(self, title, height):
        self.title, self.height, self.out = title, height, []

    def box(self, kind, x, y, width, height, *lines):
        self.out.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{COLORS[kind]}" '
                        'stroke="#456"/>')
        first = y + height / 2 + 5 - 8 * (len(lines) - 1)
        for row, line in enumerate(lines):
            self.out.append(f'<text x="{x + width / 2:g}" y="{first + 16 * row:g}" text-anchor="middle">'
                            f'{escape(line)}</text>')

    def arrow(self, kind, x, y, to_x, to_y, text="", above=6):
        dash = ' stroke-dasharray="6,4"' if kind == "flush" else ""
        self.out.append(f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" stroke="{INK[kind]}" stroke-width="2"{dash} '
                        'marker-end="url(#head)"/>')
        self.out.append(f'<text x="{(x + to_x) / 2:g}" y="{(y + to_y) / 2 - above:g}" text-anchor="middle" '
                        f'font-size="12" fill="{INK[kind]}">{escape(text)}</text>')

    def note(self, x, y, text, kind=None):
        fill = f' fill="{INK[kind]}"' if kind else ' fill="#456"'
        self.out.append(f'<text x="{x}" y="{y}" font-size="12"{fill}>{escape(text)}</text>')

    def svg(self):
        return "\n".join(
            [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}" '
             f'viewBox="0 0 {WIDTH} {self.height}" font-family="sans-serif" font-size="13">',
             f"<title>{escape(self.title)}</title>",
             '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" '
             'orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>',
             f'<rect width="{WIDTH}" height="{self.height}" fill="#fff"/>'] + self.out + ["</svg>"]) + "\n"


def three():
    made = Picture("Three parties: a NIC, memory, and a reader", 250)
    made.box("writer", 30, 24, 130, 180, "NIC")
    made.box("memory", 390, 24, 150, 84, "data", "in GPU or host")
    made.box("memory", 390, 144, 150, 60, "flag", "there or elsewhere")
    made.box("reader", 770, 24, 100, 180, "reader:", "kernel", "or CPU")
    made.arrow("write", 160, 46, 388, 46, "1 WRITE of the data")
    made.arrow("flush", 160, 88, 388, 88, "between 1 and 2: READ, same pair")
    made.arrow("write", 160, 174, 388, 174, "2 WRITE of the flag, or atomic")
    made.arrow("read", 770, 174, 542, 174, "3 sees the flag")
    made.arrow("flush", 770, 88, 542, 88, "between 3 and 4: READ, driver")
    made.arrow("read", 770, 46, 542, 46, "4 loads the data")
    made.note(30, 236, "Both writes are of one NIC. A flush pushes the data in front of it: a READ by that NIC, or the "
                       "call of the GPU's driver.")
    return made


def four():
    made = Picture("Four parties: data and flag have two writers", 290)
    made.box("writer", 30, 24, 150, 84, "first NIC,", "or copy engine")
    made.box("writer", 30, 184, 150, 60, "second NIC,", "or NIC beside copies")
    made.box("memory", 390, 24, 150, 84, "data", "in GPU or host")
    made.box("memory", 390, 184, 150, 60, "flag", "there or elsewhere")
    made.box("reader", 770, 24, 100, 220, "reader:", "kernel", "or CPU")
    made.arrow("write", 180, 46, 388, 46, "1 data")
    made.arrow("flush", 180, 88, 388, 88, "READ by this NIC: a flush")
    made.arrow("write", 70, 108, 70, 182)
    made.note(78, 140, "2 the CPU has seen")
    made.note(78, 156, "that 1 has ended")
    made.arrow("write", 180, 226, 388, 226, "3 flag")
    made.arrow("flush", 182, 194, 400, 110)
    made.note(316, 164, "READ by that NIC: none", "flush")
    made.arrow("read", 770, 214, 542, 214, "4 sees the flag")
    made.arrow("flush", 770, 88, 542, 88, "between 4 and 5: driver")
    made.arrow("read", 770, 46, 542, 46, "5 loads the data")
    made.note(30, 276, "Requests of the second writer push nothing of the first. The call of the GPU's driver pushes "
                       "what all NICs wrote there.")
    return made


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    for name, picture in (("three-parties", three()), ("four-parties", four())):
        (folder / f"{name}.svg").write_text(picture.svg())


if __name__ == "__main__":
    main()
