# SPDX-License-Identifier: Apache-2.0
"""advise --patterns: each pattern is found in a program that has it, with its line, bytes and time, and in no program that does the same without it;
nothing is said where uses are missing, nor that a block is never used if an array of addresses could lead to it."""
import bisect
import csv
import re

import pytest
from conftest import ROOT, Programs

N = 4 << 20  # numbers in a block: 16 MiB
BEFORE = f"""
import torch
n = {N}
host = torch.ones(n)
small = torch.ones(100, device="cuda")
def work(used=None):
    for i in range(150):
        small.mul_(1.0)
        if used is not None and i % 5 == 0:
            used.add_(1)
"""
# The names of lines end them: `# late` is the line that allocates the block which is freed late.
BAD = BEFORE + """
lost = torch.empty(n, device="cuda")  # lost
lost.copy_(host)
lost.copy_(host)
late = torch.empty(n, device="cuda")  # late
late.fill_(1)
early = torch.empty(n, device="cuda")  # early
idle = torch.empty(n, device="cuda")  # idle
idle.fill_(1)
never = torch.empty(n, device="cuda")  # never
work(lost)
high = torch.zeros(n, device="cuda")
high.add_(lost)
del high
work(lost)
early.fill_(1)
idle.add_(1)
lost.add_(1)
del late, never, early, idle, lost
"""
GOOD = BEFORE + """
lost = torch.empty(n, device="cuda")
lost.copy_(host)
lost.add_(1)
lost.copy_(host)
late = torch.empty(n, device="cuda")
late.fill_(1)
del late
idle = torch.empty(n, device="cuda")
idle.fill_(1)
for i in range(20):
    small.mul_(1.0)
    idle.add_(lost)
early = torch.empty(n, device="cuda")
early.fill_(1)
never = torch.zeros(n, device="cuda")
high = torch.zeros(n, device="cuda")
high.add_(never)
del high, never, early
for i in range(20):
    small.mul_(1.0)
    idle.add_(lost)
del idle, lost
"""
REACHED = BEFORE + """
never = torch.empty(n, device="cuda")
addresses = torch.tensor([never.data_ptr()]).cuda()
work()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    programs = Programs(tmp_path_factory.mktemp("patterns"), forks=True)

    def record(name, text, **env):
        (programs.folder / f"{name}.py").write_text(text)
        return programs.traced(programs.folder / f"{name}.py", output=f"{name}.gmt", **env)
    return record


def test_each_pattern(tool, run):
    file = run("bad", BAD)
    document = tool.json("advise", file)
    rows = {row["pattern"]: row for row in document["patterns"]}
    lines = {line.split("# ")[1]: number for number, line in enumerate(BAD.splitlines(), 1) if "# " in line}
    assert document["uses_known"] and len(rows) == len(document["patterns"]) and {name: row["line"] for name, row in rows.items()} == lines
    assert all((row["blocks"], row["bytes"], row["at_peak_bytes"]) == (1, 4 * N, 4 * N) for row in rows.values())
    made = {int(row["line"]): row for row in csv.DictReader(tool("export", file, "--to", "csv", "-o", "-").splitlines()) if int(row["size"]) == 4 * N and row["line"]}
    time = {name: lambda key, row=made[line]: int(row[key]) for name, line in lines.items()}
    assert rows["idle"]["longest_ns"] == rows["idle"]["shortest_ns"] == time["idle"]("longest_pause_ns")
    assert rows["late"]["longest_ns"] == time["late"]("died_ns") - time["late"]("last_use_ns")
    assert rows["early"]["longest_ns"] == time["early"]("first_use_ns") - time["early"]("born_ns")
    assert rows["never"]["longest_ns"] == time["never"]("died_ns") - time["never"]("born_ns")
    assert rows["idle"]["copy_ns"] == 2 * 4 * N * 10**9 // (25 * 10**9) and rows["idle"]["fits"] == (rows["idle"]["copy_ns"] < rows["idle"]["shortest_ns"])
    assert [name for name, row in rows.items() if "fits" in row] == ["idle"]
    text = tool("advise", file, "--patterns")
    for words, name in (("freed late", "late"), ("allocated early", "early"), ("idle for long", "idle"), ("never used", "never"), ("overwritten unread", "lost")):
        assert re.search(rf"^  {words} +<module> bad\.py:{lines[name]} +1 +16\.0 MiB +16\.0 MiB +[\d.]+ [mu]?s", text, re.M), (words, text)
    assert "25 GB/s" in text and "simulated device" in text


def test_healthy_twins(tool, run):
    document = tool.json("advise", run("good", GOOD))
    assert document["uses_known"] and document["patterns"] == []
    assert "None holds 1 % of the peak." in tool("advise", run("good", GOOD), "--patterns")


def test_nothing_is_claimed_that_is_not_known(tool, run):
    """A kernel may reach a block by its address on the device; without uses nothing is known."""
    assert [row for row in tool.json("advise", run("reached", REACHED))["patterns"] if row["pattern"] == "never"] == []
    off = run("off", BAD, GPUMEMTRACE_USES="off")
    document = tool.json("advise", off)
    assert (document["uses_known"], document["patterns"]) == (False, [])
    assert "does not have all uses" in tool("advise", off, "--patterns")
    tool("advise", "--patterns", "--", "true", code=2)


def recomputed(tool, file):
    """Blocks, bytes, bytes at the peak and the longest time of each pattern and line, from the events alone."""
    works, live, order, blocks, last, now, peak, at = 0, {}, [], [], {}, 0, 0, 0
    for e in tool.events(file):
        if e.get("kind") == "block_alloc":
            live[e["addr"]] = b = {"addr": e["addr"], "size": e["size"], "born": (e["seq"], e["time_ns"], works), "uses": [], "died": None}
            bisect.insort(order, e["addr"])
            blocks.append(b)
            now += e["size"]
            if now > peak:
                peak, at = now, e["seq"]
        elif e.get("kind") == "block_free" and e["addr"] in live:
            b = live.pop(e["addr"])
            b["died"] = e["seq"], e["time_ns"], works
            order.remove(e["addr"])
            now -= b["size"]
        elif e.get("kind") in ("use", "transfer"):
            places = e.get("places", [e["addr"]] if e["kind"] == "transfer" else [])
            if not e["flags"] & 512:
                works += bool(places)
                last[e["thread"]] = works, e["seq"], e["time_ns"]
            for place in places:
                i = bisect.bisect_right(order, place) - 1
                b = live[order[i]] if i >= 0 else None
                if b and place < b["addr"] + b["size"] and (not b["uses"] or b["uses"][-1] != last[e["thread"]]):
                    b["uses"].append(last[e["thread"]])
    rows = {(int(r["address"]), int(r["born_ns"])): r for r in csv.DictReader(tool("export", file, "--to", "csv", "-o", "-").splitlines())}
    late, idle, found = max(5, min(20, works // 200)), max(10, min(100, works // 50)), {}

    def add(pattern, b, time, there):
        r = rows[b["addr"], b["born"][1]]
        key = pattern, r["function"] or r["node"], r["file"], int(r["line"] or 0)
        x = found.setdefault(key, [0, 0, 0, 0])
        if r["class"] != "workspace":
            found[key] = [x[0] + 1, x[1] + b["size"], x[2] + b["size"] * there, max(x[3], time)]

    for b in blocks:
        uses = b["uses"]
        if not uses:
            continue
        if uses[0][0] - b["born"][2] - 1 >= late:
            add("early", b, uses[0][2] - b["born"][1], b["born"][0] <= at < uses[0][1])
        pauses = [(q[2] - p[2], p, q) for p, q in zip(uses, uses[1:])]
        time, p, q = max(pauses, key=lambda x: x[0], default=(0, None, None))
        if time and q[0] - p[0] - 1 >= idle:
            add("idle", b, time, p[1] <= at < q[1])
        if b["died"] and b["died"][2] - uses[-1][0] >= late:
            add("late", b, b["died"][1] - uses[-1][2], uses[-1][1] <= at < b["died"][0])
    return peak, found


@pytest.mark.more
@pytest.mark.parametrize("program", ["trainer", "mixtral", "encoders"])
def test_in_programs_of_frameworks(tool, run, program):
    file = run(program, (ROOT / f"tests/frameworks/programs/{program}.py").read_text())
    rows = tool.json("advise", file)["patterns"]
    peak, truth = recomputed(tool, file)
    assert {"late", "idle"} <= {row["pattern"] for row in rows} <= {"late", "early", "idle"} and sum(row["at_peak_bytes"] > 0 for row in rows) >= 3
    for row in rows:
        assert truth[row["pattern"], row["function"], row["file"], row["line"]] == [row["blocks"], row["bytes"], row["at_peak_bytes"], row["longest_ns"]], row
    said = {(row["pattern"], row["function"], row["file"], row["line"]) for row in rows}
    assert [key for key, x in truth.items() if x[2] * 100 >= peak and key not in said] == []
