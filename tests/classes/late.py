# SPDX-License-Identifier: Apache-2.0
"""late.py FOLDER [--case NAME]... [--json]: judges recordings that begin late. FOLDER is what score.py --tags off --keep left. Each
recording becomes a memory snapshot of PyTorch whose trace begins after a third of the marks and which has no stacks of what was
there before; the later marks are judged."""
import argparse
import collections
import json
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import precision
import score


def events_of(file, device):
    """(time_ns, address) of every block that comes or goes on the device."""
    done = subprocess.run([score.TOOL, "dump", str(file), "--json"], capture_output=True, text=True, timeout=600, check=True)
    lines = (json.loads(line) for line in done.stdout.splitlines() if '"kind":"block_' in line)
    return [(e["time_ns"], e["addr"]) for e in lines if e["kind"] in ("block_alloc", "block_free") and e["device"] == device]


def cut(snapshot, since_us):
    """Without what the trace has before that, and without the stacks of blocks that were there."""
    snapshot["device_traces"] = [[e for e in trace if e["time_us"] > since_us] for trace in snapshot["device_traces"]]
    young = {e["addr"] for trace in snapshot["device_traces"] for e in trace if e["action"] == "alloc"}
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block.get("address") not in young:
                block["frames"] = []


def late(recording, truth, folder):
    """The recording that begins late, and the truth's lines with moments of it."""
    lines = [json.loads(line) for line in truth.read_text().splitlines()]
    device = lines[0]["device"]
    times = [score.ask("live", recording, "--at", "mark:%s#%d" % (line["mark"], line["k"]), "--device", device)["time_ns"] for line in lines]
    out = folder / (recording.parent.name + "." + recording.name + ".pickle")
    subprocess.run([score.TOOL, "export", str(recording), "--to", "torch", "-o", str(out)], capture_output=True, timeout=600, check=True)
    snapshot = pickle.loads(out.read_bytes())
    first = next(e for e in snapshot["device_traces"][device] if e["action"] == "alloc")
    begin_ns, begin = events_of(recording, device)[0]
    assert first["addr"] == begin, "the trace begins with another block"
    third = len(lines) // 3
    unix = first["time_us"] - begin_ns // 1000
    cut(snapshot, times[third] // 1000 + unix)
    out.write_bytes(pickle.dumps(snapshot))
    end_us, end_ns = snapshot["device_traces"][device][-1]["time_us"], events_of(out, device)[-1][0]
    return out, [{**line, "at": str(end_ns - (end_us - (ns // 1000 + unix)) * 1000)}
                 for line, ns in list(zip(lines, times))[third + 1:] if line["device"] == device]


def judge(folder, case):
    total, wrong = collections.Counter(), collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch:
        for truth in sorted((folder / case).glob("truth.?")):
            alone = folder / case / "run.gmt"
            recording = alone if alone.exists() else folder / case / f"run.{truth.suffix[1:]}.gmt"
            file, lines = late(recording, truth, Path(scratch))
            for line in lines:
                score.compare(file, line, total, wrong)
    whole = total["bytes"] or 1
    before = {rule: got for rule, got in precision.of(total).items() if rule.startswith("before-")}  # others: score.py judges them
    return {"case": case + ", late", "tags": "off", "marks": 0, "bytes": total["bytes"], "right": total["right"] / whole,
            "unknown": total["unknown"] / whole, "undecided_bytes": total["undecided"], "rules": before, "wrong": []}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--case", action="append", metavar="NAME")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = options.case or sorted(p.name for p in options.folder.iterdir() if list(p.glob("truth.?")))
    results = [judge(options.folder, name) for name in names]
    if options.json:
        return print(json.dumps(results))
    for result in results:
        score.show(result)
    print(precision.show(precision.gather(results)))


if __name__ == "__main__":
    sys.exit(main())
