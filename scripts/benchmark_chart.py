# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/benchmarks.md as a picture, for light and dark pages: benchmark_chart.py > docs/benchmarks.svg.
With --figures: the three lines of README."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| ([a-z]\S+) \| ([\d.]+) (\S+) \|$", re.M)
OURS, THEIRS = "gpumemtrace", "PyTorch's recorder"
WIDTH, LEFT, BAR, STEP, TITLE = 760, 260, 14, 20, 34

STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.none { fill: #8c959f } .ours { fill: #0969da } .theirs { fill: #bc4c00 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.none { fill: #7d8590 } .ours { fill: #4493f8 } .theirs { fill: #f0883e }
}
</style>"""


def figures():
    return {name: float(value) for name, value, _ in ROW.findall((ROOT / "docs/benchmarks.md").read_text())}


def added(f, depth, who):
    return (f[f"pair.depth{depth}.{who}"] - f[f"pair.depth{depth}.nothing"]) / 1000


def charts(f):
    """Title, unit, digits behind the point, and rows: name, colour, value."""
    pairs = [(f"{name}, {depth} frames deep", kind, added(f, depth, who)) for depth in (5, 25)
             for name, kind, who in ((OURS, "ours", "gpumemtrace-all"), (THEIRS, "theirs", "recorder-all"))]
    step = [("without a recorder", "none", f["gpt2.step.nothing"]), (OURS, "ours", f["gpt2.step.gpumemtrace"]),
            (THEIRS, "theirs", f["gpt2.step.recorder"])]
    size = [(OURS, "ours", f["gpt2.size.gpumemtrace"]), (THEIRS, "theirs", f["gpt2.size.recorder"])]
    return [("Added to an allocation and its free, with all stacks", "µs", 2, pairs), ("A training step of GPT-2", "ms", 1, step),
            ("Size of an event on disk", "bytes", 0, size)]


def svg(f):
    out, y = [], 0
    for title, unit, digits, rows in charts(f):
        y += TITLE
        out.append(f'<text class="title" x="0" y="{y - 10}">{title}, {unit}</text>')
        scale = (WIDTH - LEFT - 70) / max(value for _, _, value in rows)
        for name, kind, value in rows:
            out.append(f'<text x="{LEFT - 8}" y="{y + 11}" text-anchor="end">{name}</text>'
                       f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{max(value * scale, 1):.1f}" height="{BAR}" rx="2"/>'
                       f'<text x="{LEFT + value * scale + 6:.1f}" y="{y + 11}">{value:.{digits}f}</text>')
            y += STEP
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 6}" width="{WIDTH}" height="{y + 6}" role="img">',
                      "<title>Costs of gpumemtrace beside those of PyTorch's recorder</title>", STYLE, *out, "</svg>"]) + "\n"


def sentences(f):
    ours, theirs = (100 * (f[f"gpt2.step.{who}"] / f["gpt2.step.nothing"] - 1) for who in ("gpumemtrace", "recorder"))
    return [f"- A training step of GPT-2 takes {ours:.0f} % longer (PyTorch's recorder: {theirs:.0f} %) where kernels take no time "
            f"({f['gpt2.step.nothing']:.1f} ms, simulated); on a card the share is smaller.",
            f"- An allocation and its free, with Python and native stacks, take {added(f, 25, 'gpumemtrace-all'):.1f} µs more, "
            f"25 frames deep. PyTorch's own recorder adds {added(f, 25, 'recorder-all'):.1f} µs.",
            f"- An event takes {f['gpt2.size.gpumemtrace']:.0f} bytes on disk, in PyTorch's snapshot {f['gpt2.size.recorder']:.0f}."]


if __name__ == "__main__":
    sys.stdout.write("\n".join(sentences(figures())) + "\n" if "--figures" in sys.argv else svg(figures()))
