# SPDX-License-Identifier: Apache-2.0
"""The command line: what each command answers about recordings of known content, and that wrong use gets one
clear sentence and the right exit code."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import NO_CARD, once

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.environ.get("GPUMEMTRACE_TEST_TOOL", os.path.join(ROOT, "build/gpumemtrace"))
BAD = os.path.join(ROOT, "tests/data/bad")
GOLDEN = os.path.join(ROOT, "tests/data/v1/training.gmt")
COMMANDS = re.findall(r"^COMMAND\((\w+),", open(os.path.join(ROOT, "viewer/ask/commands.def")).read(), re.M)
READERS = [c for c in COMMANDS if c not in ("run", "ctl", "sql", "attach", "bisect", "fit")]

MIB = 1 << 20
STEP = "Optimizer.step#AdamW.step"

# Two devices. On device 0: a weight, an input, an activation (the peak, with a gap), a free, optimizer state.
SAMPLE = f"""
string 1 fwd
string 2 {STEP}
string 3 AddmmBackward0
string 4 cudaMalloc
thread 1 4711 main
thread 2 4712 pt_autograd_0
meta torch.version 2.11.0
code 1 779 10 /home/u/train.py <module> 80 00
code 2 779 40 /home/u/model.py Model.forward 80 00
code 3 779 99 /v/lib/python3.11/site-packages/torch/nn/modules/module.py Module._call_impl 80 00
node 1 0 2 {1 << 32 | 1}
node 2 1 2 {2 << 32 | 1}
node 3 2 2 {3 << 32 | 1}
event meminfo time_ns=90 arg0={60 * MIB} arg1={80 * MIB} device=0
event mem_alloc time_ns=100 addr=0x10000000 size={20 * MIB} arg0=1 flags=2 name=4 stack=3 thread=1
event block_alloc time_ns=110 addr=0x10000000 size={4 * MIB} arg0={4 * MIB} arg1={20 * MIB} stack=1 thread=1
event tag_leaf time_ns=115 addr=0x10000000 size={4 * MIB} arg0=77 thread=1
event range_begin time_ns=120 arg0=1 arg1=1 name=1 thread=1
event block_alloc time_ns=130 addr=0x10400000 size={2 * MIB} arg0={6 * MIB} arg1={20 * MIB} stack=2 thread=1
event block_alloc time_ns=140 addr=0x10800000 size={8 * MIB} arg0={14 * MIB} arg1={20 * MIB} stack=3 thread=1
event tag_saved time_ns=145 addr=0x10800000 size={8 * MIB} arg0=501 name=3 stack=3 thread=1
event range_end time_ns=150 arg0=1 arg1=1 name=1 thread=1
event range_begin time_ns=160 arg0=2 arg1=1 name=1 thread=1
event block_free time_ns=170 addr=0x10800000 size={8 * MIB} arg0={6 * MIB} arg1={20 * MIB} thread=2
event tag_released time_ns=171 arg0=501 thread=2
event block_alloc time_ns=175 addr=0x10600000 size={1 * MIB} arg0={7 * MIB} arg1={20 * MIB} name=3 scope=1 thread=2
event tag_grad time_ns=176 addr=0x10600000 size={1 * MIB} arg0=77 thread=2
event range_begin time_ns=180 arg0=3 arg1=1 name=2 thread=1
event block_alloc time_ns=185 addr=0x10c00000 size={3 * MIB} arg0={10 * MIB} arg1={20 * MIB} stack=1 thread=1
event range_end time_ns=190 arg0=3 arg1=1 name=2 thread=1
event block_oom time_ns=195 size={90 * MIB} arg0={10 * MIB} arg1={20 * MIB} stack=1 thread=1
event block_alloc time_ns=200 device=1 addr=0x90000000 size=512 arg0=512 arg1={2 * MIB} stack=1 thread=1
event block_free time_ns=210 device=1 addr=0x90000000 size=512 arg0=0 arg1={2 * MIB} stack=1 thread=1
event block_free time_ns=220 device=1 addr=0x95550000 size=512 arg0=0 arg1={2 * MIB} stack=1 thread=1
event dropped time_ns=225 arg0=3 thread=2
event end time_ns=230
"""


def run(*args, **kwargs):
    return subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True, timeout=600, **kwargs)


def ok(*args, **kwargs):
    done = run(*args, **kwargs)
    assert done.returncode == 0, done.stderr
    return done.stdout


def answer(*args):
    return json.loads(ok(*args, "--json"), object_pairs_hook=once)


@pytest.fixture(scope="session")
def make(tmp_path_factory):
    """make(text): the path of a recording with that content."""
    subprocess.run(["make", "-s", "build/data/make_recording"], cwd=ROOT, check=True)
    folder = tmp_path_factory.mktemp("recordings")

    def write(text, name="r.gmt"):
        path = os.path.join(str(folder), name)
        subprocess.run([os.path.join(ROOT, "build/data/make_recording"), path], input=text, text=True, check=True)
        return path

    return write


@pytest.fixture(scope="session")
def sample(make):
    return make(SAMPLE, "sample.gmt")


# What the commands answer


def test_a_function_of_cpp_stands_without_its_template(make):
    """Wherever a moment or a line is named."""
    text = SAMPLE.replace("Model.forward", "ns::run<float,std::array<char*,2ul>>(std::function<void(int)>const&)")
    recording = make(text, "cpp.gmt")
    for command in (["peak"], ["steps"], ["timeline"], ["report"], ["advise"], ["diff", make(SAMPLE, "old.gmt")]):
        said = ok(command[0], *command[1:], recording)
        assert "std::array" not in said and "std::function" not in said, said
    assert "ns::run<> model.py:40" in ok("peak", recording)
    done = run("check", recording, "--max-peak", "1MiB")
    assert ", in step 1, forward, ns::run<> model.py:40; most of it" in done.stdout, done.stdout



def test_report(sample):
    report = answer("report", sample)
    assert [m["kind"] for m in report.pop("summary")] == ["out_of_memory", "incomplete"]
    assert report == {
        "events": 23, "allocs": 6, "frees": 2, "dropped": 3, "truncated": False, "contexts": [],
        "devices": [
            {"device": 0, "peak_bytes": 14 * MIB, "peak_time_ns": 140, "end_bytes": 10 * MIB,
             "peak_reserved_bytes": 20 * MIB, "resident_peak_bytes": 14 * MIB, "asleep_bytes": 0, "context_bytes": 20 * MIB, "pools": [], "ooms": 1,
             "unused_at_peak_bytes": None, "unused_at_peak": [], "used_bound_bytes": None,
             "function": "Model.forward", "file": "/home/u/model.py", "line": 40,
             "categories_at_peak": {"parameters": 4 * MIB, "activations": 8 * MIB, "unknown": 2 * MIB}},
            {"device": 1, "peak_bytes": 512, "peak_time_ns": 200, "end_bytes": 0,
             "peak_reserved_bytes": 2 * MIB, "resident_peak_bytes": 512, "asleep_bytes": 0, "context_bytes": 0, "pools": [],
             "unused_at_peak_bytes": None, "unused_at_peak": [], "used_bound_bytes": None, "ooms": 0,
             "categories_at_peak": {"forward_temporaries": 512},
             "function": "<module>", "file": "/home/u/train.py", "line": 10}],
        "file_bytes": os.path.getsize(sample)}


def test_failed_allocations_of_other_libraries(tmp_path):
    """Beside a framework's blocks: the framework's own failed calls are its retries, and not counted."""
    text = "thread 1 1 main\n" + "event block_alloc time_ns=10 addr=268435456 size=1048576 arg0=1048576 arg1=2097152 thread=1\n"
    for ns, flags, size in ((20, 0, 7 << 30), (30, 0, 3 << 30), (40, 2, 5 << 30)):
        text += f"event mem_fail time_ns={ns} size={size} arg0=1 flags={flags} thread=1\n"
    path = tmp_path / "fails.gmt"
    subprocess.run(["make", "-s", "build/data/make_recording"], cwd=ROOT, check=True)
    subprocess.run([os.path.join(ROOT, "build/data/make_recording"), path], input=text, text=True, check=True)
    assert re.search(r"^  failed allocations +2  by calls of other libraries, the last for 3\.0 GiB$", ok("report", path), re.M)


def test_report_text_answers_first_and_fits(sample):
    text = ok("report", os.path.basename(sample), cwd=os.path.dirname(sample))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    peak = next(line for line in lines if "peak" in line)
    assert "14.0 MiB of 80.0 MiB" in peak
    assert lines[lines.index(peak) + 1] == "In step 1, forward, Model.forward model.py:40"
    assert lines[2].startswith(" 1. Out of memory: ") and lines.index(peak) < 13
    assert re.search(r"Model\.forward model\.py:40\s+10\.0 MiB\s+71 %\s+2$", text, re.M)
    assert re.search(r"<module> train\.py:10\s+4\.0 MiB\s+29 %\s+1$", text, re.M)
    assert re.search(r"cached, not in use\s+6\.0 MiB\s+largest hole 4\.0 MiB \(reserved 20\.0 MiB\)", text)
    assert "Out of memory 1 time, for a tensor of 90.0 MiB\n" in text and "gpumemtrace oom " in text
    assert "3 events were lost" in text


@pytest.mark.parametrize("at, time_ns, sizes", [
    ("peak", 140, {4, 2, 8}), ("end", 230, {4, 2, 1, 3}), ("oom", 195, {4, 2, 1, 3}),
    ("115", 115, {4}), ("139", 130, {4, 2}), ("5", 5, set()), ("999999", 230, {4, 2, 1, 3}),
    ("mark:fwd", 120, {4}), ("mark:fwd#1", 120, {4}), ("mark:fwd#2", 160, {4, 2, 8}),
    (f"mark:{STEP}", 180, {4, 2, 1}), ("0.00000003s", 120, {4}),
])
def test_live(sample, at, time_ns, sizes):
    live = answer("live", sample, "--at", at)
    assert set(live) == {"device", "time_ns", "bytes", "reserved_bytes", "cached_bytes", "waiting_bytes", "pools", "blocks"}
    assert (live["device"], live["bytes"]) == (0, sum(sizes) * MIB)
    assert {b["size"] // MIB for b in live["blocks"]} == sizes
    if sizes:
        assert live["time_ns"] == time_ns
    for b in live["blocks"]:
        assert set(b) == {"addr", "size", "category", "stack", "born_ns", "uses", "last_use_ns", "next_use_ns", "function", "file", "line",
                          "module"}


def test_live_says_what_blocks_are(sample):
    end = {b["size"] // MIB: b for b in answer("live", sample, "--at", "end")["blocks"]}
    assert {size: b["category"] for size, b in end.items()} == {
        4: "parameters", 2: "unknown", 1: "gradients", 3: "optimizer_state"}
    assert end[2] == {"addr": 0x10400000, "size": 2 * MIB, "category": "unknown", "stack": 2, "born_ns": 130,
                      "uses": None, "last_use_ns": None, "next_use_ns": None,
                      "function": "Model.forward", "file": "/home/u/model.py", "line": 40, "module": ""}
    forward = {b["size"] // MIB: b["category"] for b in answer("live", sample, "--at", "mark:fwd#2")["blocks"]}
    assert forward == {4: "parameters", 2: "unknown", 8: "activations"}


def test_live_of_a_device(sample):
    live = answer("live", sample, "--device", 1)
    assert {k: live[k] for k in ("device", "time_ns", "bytes", "blocks")} == {
        "device": 1, "time_ns": 200, "bytes": 512,
        "blocks": [{"addr": 0x90000000, "size": 512, "category": "forward_temporaries", "stack": 1, "born_ns": 200, "uses": None,
                    "last_use_ns": None, "next_use_ns": None, "function": "<module>",
                    "file": "/home/u/train.py", "line": 10, "module": ""}]}


def test_timeline(sample):
    said = answer("timeline", sample, "--by", "events", "--points", 23)
    assert (said["device"], said["first_ns"], said["last_ns"]) == (0, 90, 230)
    assert (said["peak_bytes"], said["peak_time_ns"]) == (14 * MIB, 140)
    sums = {b["last_ns"]: {c: n // MIB for c, n in b["categories_at_last"].items()} for b in said["buckets"]}
    assert sums[110] == {"parameters": 4} and sums[130] == {"parameters": 4, "unknown": 2}
    assert sums[140] == sums[145] == {"parameters": 4, "unknown": 2, "activations": 8}
    assert sums[175] == {"parameters": 4, "unknown": 2, "gradients": 1}
    assert 220 not in sums  # it frees what nobody knows: nothing changes
    assert sums[210] == {"parameters": 4, "unknown": 2, "gradients": 1, "optimizer_state": 3}
    assert {b["reserved_bytes"] for b in said["buckets"][2:]} == {20 * MIB}
    two = answer("timeline", sample, "--points", 2)["buckets"]
    assert [(b["first_ns"], b["last_ns"]) for b in two] == [(90, 160), (161, 230)]
    assert two[0]["max"] == {"bytes": 14 * MIB, "time_ns": 140, "seq": 7}
    assert two[1]["min"] == {"bytes": 6 * MIB, "time_ns": 170, "seq": 11}
    assert two[1]["categories_at_max"] == {"parameters": 4 * MIB, "unknown": 2 * MIB, "activations": 8 * MIB}


def test_leaks_need_steps(sample):
    said = answer("leaks", sample)
    assert (said["growth_per_step"], said["owners"], said["from_step"], said["to_step"]) == (0, [], 0, 0)
    assert "three complete ones are needed" in ok("leaks", sample)


def test_timeline_is_a_chart(sample, on_terminal):
    text = ok("timeline", sample, "--height", 7, "--by", "events", env=dict(os.environ, LC_ALL="C"))
    assert text.isascii() and max(map(len, text.splitlines())) <= 80
    rows = [line[12:].rstrip() for line in text.splitlines() if line[10:12] == " |"]
    ends = [b["last_ns"] for b in answer("timeline", sample, "--by", "events", "--points", 23)["buckets"]]
    columns = ["".join(column).strip() for column in zip(*(row.ljust(len(ends)) for row in reversed(rows)))]
    # 14 MiB in 7 rows: two MiB each; classes from the ground in their order
    assert columns[ends.index(140)] == "PPAAAA." and columns[ends.index(110)] == "PP"
    assert columns[ends.index(130)] == "PP."
    assert columns[-1] == "PPGS."
    assert "P parameters" in text and "A activations" in text
    blocks = ok("timeline", sample, env=dict(os.environ, LC_ALL="C.UTF-8"))
    assert "┤" in blocks and "\x1b" not in blocks
    colours = on_terminal("timeline", sample, NO_COLOR="", COLORTERM="truecolor")
    assert "\x1b[38;2;245;133;24m" in colours and "█" in colours


def test_timeline_chooses_its_axis_and_explains_letters(sample):
    """By events where they are crowded, unless it was asked for; each letter below the chart has a word."""
    crowded = os.path.join(ROOT, "tests/data/example/old.gmt")
    by = {axis: ok("timeline", crowded, *(["--by", axis] if axis else [])) for axis in ("", "time", "events")}
    assert by[""].startswith(by["events"]) and "--by time" in by[""].splitlines()[-1] and by[""] != by["time"]
    assert [b["first_ns"] for b in answer("timeline", crowded)["buckets"]] == [b["first_ns"] for b in answer("timeline", crowded, "--by", "time")["buckets"]]
    letters = re.search(r"^ *phase (.*)$", by[""], re.M)[1]
    assert set(letters) == set(re.findall(r"(\S) [a-z_ ]+", re.search(r"^ *phases (.*)$", by[""], re.M)[1])) and len(set(letters)) > 4
    assert "small part" not in ok("timeline", sample, "--by", "time") and max(map(len, by[""].splitlines())) <= 80


@pytest.mark.parametrize("command", ["report", "timeline", "top"])
def test_a_terminal_without_escapes(sample, on_terminal, command):
    assert "\x1b" not in on_terminal(command, sample, TERM="dumb", NO_COLOR="") and "\x1b" in on_terminal("timeline", sample, TERM="xterm", NO_COLOR="")


def test_stack(sample):
    assert answer("stack", sample, 3) == {"frames": [
        {"kind": "python", "function": "Module._call_impl", "line": 99,
         "file": "/v/lib/python3.11/site-packages/torch/nn/modules/module.py"},
        {"kind": "python", "function": "Model.forward", "file": "/home/u/model.py", "line": 40},
        {"kind": "python", "function": "<module>", "file": "/home/u/train.py", "line": 10}]}
    assert answer("stack", sample, 3, "--native") == {"frames": []}
    assert "Model.forward (/home/u/model.py:40)" in ok("stack", sample, 3)


def test_all_stacks(sample):
    found = [json.loads(line) for line in ok("stack", sample, "--all", "--json").splitlines()]
    assert [s["stack"] for s in found] == [3, 1, 2]
    for s in found:
        assert {"frames": s["frames"]} == answer("stack", sample, s["stack"])
    assert_refused(run("stack", sample, "1", "--all"), 2)


def test_dump_says_what_was_recorded(sample):
    said = [line.split() for line in SAMPLE.splitlines() if line.startswith("event ")]
    events = [json.loads(line) for line in ok("dump", sample, "--json").splitlines()]
    assert [e["kind"] for e in events] == [words[1] for words in said]
    assert [e["seq"] for e in events] == list(range(1, len(said) + 1))
    names = {1: "fwd", 2: STEP, 3: "AddmmBackward0", 4: "cudaMalloc", 0: ""}
    for event, words in zip(events, said):
        for word in words[2:]:
            key, value = word.split("=")
            want = int(value, 0)
            assert event[key] == (names[want] if key == "name" else want), (event, word)
    assert len(ok("dump", sample).splitlines()) == len(said)


def test_definitions(sample):
    defs = [json.loads(line) for line in ok("dump", sample, "--defs", "--json").splitlines()]
    assert {(d["id"], d["text"]) for d in defs if d["def"] == "string"} == {
        (1, "fwd"), (2, STEP), (3, "AddmmBackward0"), (4, "cudaMalloc")}
    assert {(d["id"], d["parent"], d["value"]) for d in defs if d["def"] == "stack"} == {
        (1, 0, 1 << 32 | 1), (2, 1, 2 << 32 | 1), (3, 2, 3 << 32 | 1)}


def test_info(sample):
    info = answer("info", sample)
    assert (info["events"], info["dropped"], info["pid"], info["clean_end"]) == (23, 3, 4242, True)
    assert info["meta"] == {"torch.version": "2.11.0"}
    assert info["duration_ns"] == 140
    assert {k["kind"]: k["count"] for k in info["kinds"]}["block_alloc"] == 6
    assert "2.11.0" in ok("info", sample)


def test_what_is_redacted_names_nobody(make):
    """Values of facts by key: what is the user's own goes, what a report of a bug needs stays."""
    facts = {"argv": "/home/ann/train.py", "host": "ann-pc", "cwd": "/home/ann", "env.LD_PRELOAD": "/home/ann/lib.so:/opt/x.so",
             "env.MASTER_ADDR": "node7", "git.branch": "ann/secret", "git.remote": "host/ann/secret", "git.cwd_remote": "host/ann", "device.0.uuid": "1-2-3", "torch.version": "2.11.0",
             "torch.tags": "off: read from /home/ann/x and ann-pc", "env.NCCL_DEBUG": "INFO"}
    facts |= {f"env.{key}": "ann-1" for key in ("SLURM_JOB_NAME", "SLURM_CLUSTER_NAME", "LSB_JOBNAME", "PBS_JOBNAME", "RAY_JOB_ID", "POD_NAMESPACE",
                                                "GITHUB_REPOSITORY", "CI_PROJECT_PATH", "WANDB_PROJECT", "MLFLOW_RUN_ID", "GPUMEMTRACE_LABELS")}
    path = make("".join(f"meta {key} {value}\n" for key, value in facts.items()) +
                "module 1 0x1000 0x2000 /home/ann/lib.so\nevent end time_ns=1\n")
    assert answer("info", path)["meta"] == facts
    text = ok("info", "--redact", "--modules", path)
    info = answer("info", "--redact", path)
    assert (info["meta"]["torch.version"], info["meta"]["env.NCCL_DEBUG"]) == ("2.11.0", "INFO")
    assert info["meta"]["torch.tags"].startswith("off: read from (left out)")
    for said in (text, json.dumps(info)):
        assert not any(word in said for word in ("ann", "node7", "secret", "1-2-3", "/opt")), said


def test_a_program_without_a_framework(make):
    path = make("""
event mem_alloc time_ns=1 addr=0x1000 size=1000 arg0=1
event mem_alloc time_ns=2 addr=0x9000 size=50 arg0=4 device=-1
event phys_create time_ns=3 addr=0x77 size=4000 arg0=8
event mem_free time_ns=4 addr=0x1000 arg0=1
event mem_fail time_ns=5 size=99 arg0=1 arg1=2
event end time_ns=6
""")
    report = answer("report", path)
    assert (report["allocs"], report["frees"]) == (2, 1)
    assert report["devices"] == [{
        "device": 0, "peak_bytes": 5000, "peak_time_ns": 3, "end_bytes": 4000, "peak_reserved_bytes": 5000,
        "resident_peak_bytes": 5000, "asleep_bytes": 0, "context_bytes": 0, "pools": [],
        "unused_at_peak_bytes": None, "unused_at_peak": [], "used_bound_bytes": None,
        "categories_at_peak": {"unknown": 5000}, "ooms": 1, "function": "", "file": "", "line": 0}]
    assert {b["size"] for b in answer("live", path)["blocks"]} == {1000, 4000}


def test_other_libraries_have_their_names(make):
    text = ok("report", make(f"""
module 1 0x100000 0x200000 /usr/lib/libnccl.so.2
node 1 0 1 0x100500
event mem_alloc time_ns=1 addr=0x10000000 size={2 * MIB} arg0=1 flags=2
event block_alloc time_ns=2 addr=0x10000000 size=512 arg0=512 arg1={2 * MIB}
event mem_alloc time_ns=3 addr=0x20000000 size={4 * MIB} arg0=1 stack=1
event mem_alloc time_ns=4 addr=0x30000000 size={3 * MIB} arg0=4 device=-1
event block_alloc time_ns=5 addr=0x10000200 size=512 arg0=1024 arg1={2 * MIB}
event end time_ns=6
"""))
    assert re.search(r"NCCL\s+4\.0 MiB", text)
    assert re.search(r"pinned host memory\s+3\.0 MiB", text)


def test_names_of_any_bytes(make):
    path = make("string 1 a\x1b[31mb\"\\\xe9\nevent mark time_ns=1 arg1=3 name=1\nevent end time_ns=2\n"
                .encode("latin-1").decode("latin-1"))
    assert json.loads(ok("dump", path, "--json").splitlines()[0])["name"] == "a\x1b[31mb\"\\\xe9"


HOSTILE = SAMPLE.replace("/home/u/model.py Model.forward", "/home/\x1b]0;x\x07/m\x9bodel.py Mo\x1b[31mdel.for\u009b2Jward")
READERS_OF_NAMES = [["report"], ["report", "--steps"], ["account"], ["live"], ["steps"], ["peak"], ["timeline"], ["flame", "--frames", "both"], ["leaks"], ["modules"], ["why", "0x10400000", "--at", "end"], ["stack", "3"]]


@pytest.mark.parametrize("args", READERS_OF_NAMES, ids=lambda a: a[0])
def test_no_foreign_control_reaches_the_terminal(make, on_terminal, args):
    """A function's or a file's name may hold any bytes; what steers a terminal is shown, not sent."""
    path = make(HOSTILE, "hostile.gmt")
    text = on_terminal(args[0], path, *args[1:], NO_COLOR="1")
    assert not [c for c in text if (ord(c) < 32 and c not in "\r\n") or 0x7f <= ord(c) < 0xa0], text


# What turns the direction of the text behind it, ends a line, or is not seen: "Model.forward" may look like another name.
UNSEEN = [*map(chr, [0x61c, 0x200b, 0x200e, 0x200f, *range(0x2028, 0x202f), *range(0x2060, 0x2070), 0xfeff, 0xfff9, 0xe0041])]


@pytest.mark.parametrize("args", [*READERS_OF_NAMES, ["diff"], ["diff", "--markdown"], ["dump", "--defs"], ["check", "--max-peak", "1B", "--annotations"],
                                  ["export", "--to", "csv", "-o", "-"]], ids=" ".join)
def test_names_are_shown_as_they_are(make, sample, args):  # noqa: F811
    """Marks of direction are shown, not obeyed, by every command, in Markdown and JSON too; letters of all languages stay."""
    path = make(SAMPLE.replace(f"size={8 * MIB}", f"size={9 * MIB}").replace("Model.forward", "Model\u202e.for" + "".join(UNSEEN) + "wardé\u05d0\u0646\u200d字"), "unseen.gmt")
    words = [args[0], *([sample] if args[0] == "diff" else []), path, *args[1:]]
    for more in [], ["--json"]:
        done = run(*words, *([] if {"--markdown", "--annotations", "export"} & set(args) else more))
        text = done.stdout + done.stderr
        assert text and not set(text) & set(UNSEEN), (words, text)
    assert args[0] not in ("stack", "diff", "dump") or ("\\u202e" in text and "é\u05d0\u0646\u200d字" in text)


def test_no_foreign_control_in_a_sentence(sample):
    for args in (["report", "/no\x1b[31m/su\u009bch"], ["live", sample, "--at", "mark:\x1b]0;x\x07"], ["\x1b[2J"], ["report", "/no/\u202egnp.gmt"],
                 ["live", sample, "--at", "mark:\u2066x"]):
        done = run(*args)
        assert done.returncode and done.stderr.count("\n") == 1
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066]", done.stderr), done.stderr


# Broken and interrupted recordings

EXPECTED = [line.split() for line in open(os.path.join(BAD, "expected.txt")) if line.strip() and line[0] != "#"]


@pytest.mark.parametrize("words", EXPECTED, ids=lambda w: w[0])
def test_broken_files(words, tmp_path):
    path, opens = os.path.join(BAD, words[0]), words[1] == "OK"
    verify = run("verify", path)
    assert verify.returncode == (1 if opens else 3)
    if not opens:
        for command in READERS:
            extra = {"stack": ["1"], "why": ["1"], "diff": [path], "html": ["-o", tmp_path / "x"], "recover": ["-o", tmp_path / "x"],
                     "collect": ["-o", tmp_path / "x"], "dashboard": ["-o", tmp_path / "x"],
                     "check": ["--max-peak", "1TB"]}.get(command, [])
            assert_refused(run(command, path, *extra), 3)
        return
    assert len(ok("dump", path).splitlines()) == int(words[2])
    out = tmp_path / "out.gmt"
    assert answer("recover", path, "-o", out)["events"] == int(words[2])
    assert run("verify", out).returncode == 0
    assert ok("dump", out) == ok("dump", path)
    assert oct(os.stat(out).st_mode)[-3:] == "600"


def test_verify_of_a_good_file(sample):
    said = json.loads(run("verify", sample, "--json").stdout)
    assert said["ok"] is False and said["dropped"] == 3 and not said["damage"]  # whole, but it says itself that events are lost
    assert "good" in ok("verify", GOLDEN)


def test_verify_says_where(tmp_path):
    """A byte that was changed anywhere behind the file's header lies in one of the places that are named."""
    good = open(GOLDEN, "rb").read()
    path = tmp_path / "flipped.gmt"
    for at in range(70, len(good), len(good) // 23):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1:])
        done = run("verify", path, "--json")
        assert done.returncode == 1, at
        damage = json.loads(done.stdout)["damage"]
        assert any(d["offset"] <= at < d["offset"] + d["bytes"] and not d["live"] for d in damage), (at, damage)
        assert "at byte %d: " % damage[0]["offset"] in run("verify", path).stdout
    path.write_bytes(good[:-10])
    assert "at byte %d: the file ends" % (len(good) - 10) in run("verify", path).stdout


def test_recover_keeps_all(sample, tmp_path):
    out = tmp_path / "out.gmt"
    ok("recover", sample, "-o", out)
    for args in (["dump"], ["live", "--json"], ["stack", "--json"]):
        more = ["3"] if args[0] == "stack" else []
        assert ok(args[0], sample, *more, *args[1:]) == ok(args[0], out, *more, *args[1:])
    assert os.listdir(tmp_path) == ["out.gmt"]


def test_recover_touches_nobody_elses_file(sample, tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    assert_refused(run("recover", sample, "-o", other), 2)
    assert other.read_text() == "mine"
    assert_refused(run("recover", sample, "-o", sample), 2)
    assert_refused(run("recover", sample), 2)
    assert_refused(run("recover", sample, "-o", tmp_path / "no" / "such"), 3)


def test_an_interrupted_recording(make):
    path = make(SAMPLE.replace("event end time_ns=230", "unfinished"), "unfinished.gmt")
    report = answer("report", path)
    assert report["truncated"] is True and report["events"] == 22
    assert "killed or crashed" in ok("report", path)
    assert run("verify", path).returncode == 1


# Wrong use


def assert_refused(done, code):
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    sentence = done.stderr.strip()
    assert sentence and "\n" not in sentence and sentence.startswith("gpumemtrace")


@pytest.mark.parametrize("args, code, says", [
    (["frobnicate"], 2, "frobnicate"), (["reprot"], 2, "report"), (["--frob"], 2, "--frob"),
    (["report"], 2, "FILE"), (["why", "a", "b", "c"], 2, '"c"'), (["report", "--frob", "a"], 2, "--frob"),
    (["live", "a", "--tp", "3"], 2, "--top"), (["live", "a", "--top", "x"], 2, "x"),
    (["live", "a", "--top"], 2, "--top"), (["live", "a", "--at", "noon"], 2, "noon"),
    (["live", "a", "--at", "mark:"], 2, "mark"), (["live", "a", "--at", "-5"], 2, "-5"),
    (["stack", "a"], 2, "ID"), (["stack", "a", "xyz"], 2, "xyz"), (["run"], 2, "command"),
    (["run", "--"], 2, "command"), (["run", "-o"], 2, "output"), (["run", "--stacks", "some", "--", "true"], 2, "some"),
    (["run", "--sim", "rtx4091", "--", "true"], 2, 'run: --sim: unknown card "rtx4091"; did you mean rtx4090-24g? Known are t4-16g, '),
    (["run", "--sim", "A100", "--", "true"], 2, '--sim: unknown card "A100"; did you mean a100-40g or a100-80g? '),
    (["run", "--sim", "zzz,2", "--", "true"], 2, '--sim: unknown card "zzz"; known are '),
    (["run", "--sim", "mine=3", "--", "true"], 2, '--sim: "3" is no size of a card; give one from 32MiB'),
    (["run", "--sim", "h100-80g,x", "--", "true"], 2, "h100-80g,x"), (["run", "--sim", "--", "true"], 2, "CARD"),
    (["report", "a", "--top", "-1"], 2, "from 0 up"), (["flame", "a", "--class", "weights"], 2, "optimizer_state"),
    (["modules", "a", "--class", "weights"], 2, "optimizer_state"), (["diff", "a", "b", "--fail-above", "1", "--class", "weights"], 2, "optimizer_state"),
    (["flame", "a", "--frames", "all"], 2, "both"), (["account", "a", "--layers", "0"], 2, "--layers"),
    (["timeline", "a", "--by", "size"], 2, "size"), (["timeline", "a", "--points", "-1"], 2, "--points"),
    (["report", "/nonexistent/file.gmt"], 3, "No such file"), (["report", "/"], 3, "/"),
    (["report", "/etc/passwd"], 3, "not a gpumemtrace recording"), (["report", TOOL], 3, "not a gpumemtrace"),
    (["report", os.path.join(BAD, "newer.gmt")], 3, "newer"), (["report", os.path.join(BAD, "empty.gmt")], 3, "empty"),
])
def test_wrong_use(args, code, says):
    done = run(*args)
    assert_refused(done, code)
    assert says in done.stderr


@pytest.mark.parametrize("args, says", [
    (["live", "--at", "mark:nothing"], "nothing"), (["live", "--at", "mark:fwd#3"], "2 times"),
    (["live", "--device", "7"], "7"), (["stack", "999"], "999"), (["stack", "0"], "no stack was recorded"),
])
def test_questions_without_answer(sample, args, says):
    done = run(args[0], sample, *args[1:])
    assert_refused(done, 2)
    assert says in done.stderr


@pytest.mark.parametrize("args", [["html"], ["recover"], ["run", "--", "true"]])
def test_what_is_no_stream_makes_no_file_called_minus(sample, tmp_path, args):
    done = run(args[0], "-o", "-", *(args[1:] or [sample]), cwd=tmp_path)
    assert_refused(done, 2)
    assert "standard output" in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.parametrize("card", ["nosuchcard", "mycard=abc", "=4GiB"])
def test_a_card_that_is_not_known_starts_nothing(tmp_path, card):
    done = run("run", "--sim", card, "--", "touch", tmp_path / "started")
    assert done.returncode == 2 and not (tmp_path / "started").exists()
    assert '--sim: "abc" is no size of a card' in done.stderr if "abc" in card else card in done.stderr and "h100-80g" in done.stderr


def test_no_arguments_gives_the_help():
    done = run()
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == ok("--help")
    assert ok("--version").startswith("gpumemtrace ")


def test_output_that_cannot_be_written(sample):
    with open("/dev/full", "w") as full:
        done = subprocess.run([TOOL, "dump", sample], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600)
    assert done.returncode == 3 and "cannot be written" in done.stderr


@pytest.fixture
def on_terminal(terminal):
    """What a command writes on a terminal that does not know its size, where nothing is paged."""
    def text(*args, **env):
        t = terminal(TOOL, *args, lines=0, columns=0, **env)
        assert t.ended() == 0
        return t.text
    return text


def test_colour_is_for_terminals_that_want_it(sample, on_terminal):
    assert "\x1b[" in on_terminal("report", sample, NO_COLOR="")
    assert "\x1b[" not in on_terminal("report", sample, NO_COLOR="1")
    assert "\x1b[" not in ok("report", sample)


# run


def test_run_is_like_the_program(tmp_path):
    program = ["sh", "-c", "cat; echo out; echo err >&2; exit 7"]
    done = run("run", "--", *program, input="in\n", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "in\nout\n")
    assert done.stderr == ("err\ngpumemtrace: nothing was recorded: no CUDA allocation in the programs that loaded "
                           "the library: sh and cat" + NO_CARD + "\n")
    done = run("run", "-q", *program, input="", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (7, "err\n")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_run_of_a_program_that_a_signal_ends(number, tmp_path):
    assert run("run", "sh", "-c", f"kill -{int(number)} $$", cwd=tmp_path).returncode == 128 + number


def test_run_passes_signals_on(tmp_path):
    script = "import signal,sys,time\nsignal.signal(signal.SIGTERM, lambda *a: sys.exit(42))\nprint(1, flush=True)\ntime.sleep(30)"
    p = subprocess.Popen([TOOL, "run", "-q", sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=tmp_path)
    assert p.stdout.readline() == b"1\n"
    p.send_signal(signal.SIGTERM)
    assert p.wait(20) == 42


def test_run_of_what_is_no_program(tmp_path):
    assert_refused(run("run", "--", "no-such-program-here", cwd=tmp_path), 127)
    assert_refused(run("run", "--", "/etc/passwd", cwd=tmp_path), 126)


def test_run_sets_the_environment(tmp_path):
    env = dict(os.environ, LD_PRELOAD="/lib/x86_64-linux-gnu/libm.so.6", LD_LIBRARY_PATH="/some/where")
    program = [sys.executable, "-c", "import os, json; print(json.dumps(dict(os.environ)))"]
    seen = json.loads(run("run", "-q", "-o", "a.gmt", "--stacks", "python", *program, env=env, cwd=tmp_path).stdout)
    build = os.path.dirname(os.path.realpath(TOOL))
    assert seen["LD_PRELOAD"] == f"{build}/libgpumemtrace.so:/lib/x86_64-linux-gnu/libm.so.6"
    assert (seen["GPUMEMTRACE_OUTPUT"], seen["GPUMEMTRACE_STACKS"]) == (str(tmp_path / "a.gmt"), "python")
    assert "SIMGPU_CARD" not in seen and seen["LD_LIBRARY_PATH"] == "/some/where"
    seen = json.loads(run("run", "-q", "--sim", "my=24GiB,2", "--", *program, env=env, cwd=tmp_path).stdout)
    assert (seen["SIMGPU_CARD"], seen["SIMGPU_COUNT"]) == ("my=24GiB", "2")
    assert seen["LD_PRELOAD"].split(":")[:2] == [f"{build}/libgpumemtrace.so", f"{build}/libsimgpu.so"]
    assert seen["LD_LIBRARY_PATH"] == f"{build}/simgpu:/some/where"


def test_run_replaces_recordings_only(sample, tmp_path):
    old, empty, notes = tmp_path / "old.gmt", tmp_path / "empty.gmt", tmp_path / "notes.gmt"
    old.write_bytes(open(sample, "rb").read())
    empty.write_bytes(b"")
    notes.write_text("mine")
    for path in (old, empty):
        before = path.read_bytes()
        assert run("run", "-o", path, "true").returncode == 0
        assert path.read_bytes() == before  # nothing was recorded
    marker = tmp_path / "ran"
    done = run("run", "-o", notes, "--", "touch", marker)
    assert_refused(done, 2)
    assert notes.read_text() == "mine" and not marker.exists()
    assert_refused(run("run", "-o", tmp_path, "true"), 2)
    assert_refused(run("run", "-o", tmp_path / "no" / "x.gmt", "true"), 3)


# The manual


PAGES = ["gpumemtrace", *(f"gpumemtrace-{c}" for c in COMMANDS)]


def man(page, *words):
    source = os.path.join(ROOT, "docs/man", f"{page}.1.md")
    return subprocess.run(["bash", os.path.join(ROOT, "scripts/man.sh"), *words, source], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_manual_of_a_command(command):
    """Every option stands on its page once; an example has run and said something that is no complaint of wrong use."""
    page, said = man(f"gpumemtrace-{command}", "--markdown"), ok(command, "--help")
    assert re.findall(r"^- (?:`-.`, )?`--([a-z-]+)`", page, re.M) == re.findall(r"^  -?.?,? *--([a-z-]+)", said, re.M)[:-3] + ["json"]
    assert f"`gpumemtrace {command}`" in page and f"man gpumemtrace-{command}" in said
    assert ok("help", command) == said
    runs = re.findall(r"^\$ (gpumemtrace .*)\n((?:(?!\$ |```).*\n)*)", page.split("## EXAMPLE")[1], re.M)
    assert runs and all(output.strip() or command == "run" for _, output in runs)
    assert "--help" not in "".join(output for _, output in runs)


def test_manual_is_whole():
    whole = man("gpumemtrace", "--markdown")
    assert sorted(re.findall(r"^- `([a-z]+)`: .*; gpumemtrace-\1\(1\)$", whole, re.M)) == sorted(COMMANDS)  # their order: test_groups_of_commands
    table = open(os.path.join(ROOT, "format/settings.def")).read()
    settings = re.findall(r"^(?:TEXT|SWITCH|NUMBER|CHOICE|SIZE)\((\w+)", table, re.M)
    assert re.findall(r"^- `GPUMEMTRACE_(\w+)`", whole, re.M) == settings


def test_manual_refuses_an_option_that_is_not_there(tmp_path):
    page = tmp_path / "gpumemtrace-peak.1.md"
    page.write_text("# x\n\n## OPTIONS\n\n- `--nonsense`: x\n")
    done = subprocess.run(["bash", os.path.join(ROOT, "scripts/man.sh"), page], capture_output=True, text=True)
    assert done.returncode and "no option --nonsense" in done.stderr


def test_manual_refuses_an_example_that_fails(tmp_path):
    page = tmp_path / "gpumemtrace-peak.1.md"
    for command, code in (("gpumemtrace peak none.gmt", 1), ("gpumemtrace peek old.gmt | cat; false", 0)):
        page.write_text(f"# x\n\n## OPTIONS\n\n## EXAMPLE\n\n```example\n$ {command}\n```\n")
        done = subprocess.run(["bash", os.path.join(ROOT, "scripts/man.sh"), page], capture_output=True, text=True)
        assert done.returncode == code and ("ended with code 3" in done.stderr) == bool(code)


def test_lists_of_the_manual(tmp_path):
    """A term stands alone before its meaning, other items have a bullet, and a sentence behind a list is a paragraph of its own."""
    page = tmp_path / "gpumemtrace.1.md"
    page.write_text("# gpumemtrace(1)\n\n## A\n\n- `--top` *N*, *all* (of: them): rows. Or\n  more\n- `peak`, `live` have\n  a row: each\n\nBehind it.\n")
    done = subprocess.run(["bash", os.path.join(ROOT, "scripts/man.sh"), page], capture_output=True, text=True, check=True)
    assert done.stdout.split(".SH A\n")[1] == (".TP\n\\fB\\-\\-top\\fR \\fIN\\fR, \\fIall\\fR (of: them)\nrows. Or\nmore\n"
                                               ".IP \\(bu 2\n\\fBpeak\\fR, \\fBlive\\fR have\na row: each\n.PP\nBehind it.\n")


@pytest.mark.skipif(not shutil.which("groff"), reason="no groff to judge the page")
def test_manual_pages_are_pages():
    for page in PAGES:
        done = subprocess.run(["groff", "-man", "-ww", "-Tascii", "-P-cbou"], input=man(page), capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == "", page
        for chapter in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLE"):
            assert chapter in done.stdout
        assert "`" not in done.stdout and "**" not in done.stdout, page


def test_help_of_what_is_no_command():
    assert ok("help") == ok("--help")
    assert_refused(run("help", "reprot"), 2)


def test_usage_says_which_operands_a_command_replaces():
    for command, operands in (("run", "[--] COMMAND..."), ("bisect", "GOOD BAD -- COMMAND..."), ("advise", "[FILE] [-- COMMAND...]"), ("oom", "FILE... [-- COMMAND...]")):
        assert ok(command, "--help").startswith(f"usage: gpumemtrace {command} [OPTION...] {operands}\n")


def test_help_fits_on_a_terminal():
    for args in [["--help"]] + [[c, "--help"] for c in COMMANDS]:
        assert max(map(len, ok(*args).splitlines())) <= 80


def options_of(command):
    return set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", ok(command, "--help"), re.M))


COMPLETE = """
source <("$1" --completions bash)
complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpumemtrace; echo "${COMPREPLY[@]}"; }
complete_words gpumemtrace ""
complete_words gpumemtrace export x --to p
complete_words gpumemtrace flame x --class act
complete_words gpumemtrace run --stacks ""
complete_words gpumemtrace run -- gpumemtracetest
complete_words gpumemtrace help rec
for command in "${@:2}"; do complete_words gpumemtrace "$command" --; complete_words gpumemtrace "$command" x; done
"""


def test_groups_of_commands():
    """Help, manual and completions list every command once, under the headings of one table."""
    headings = re.findall(r'^GROUP\(\w+, "(.*)"\)', open(os.path.join(ROOT, "viewer/ask/command_groups.def")).read(), re.M)
    groups = re.findall(r"^(\S.*):\n((?:  [a-z]+ +\S.*\n)+)", ok("--help"), re.M)
    named = [(heading, re.findall(r"^  (\w+)", rows, re.M)) for heading, rows in groups]
    assert [heading for heading, _ in named] == headings and len(headings) == 6
    assert sorted(name for _, names in named for name in names) == sorted(COMMANDS)
    page = subprocess.run([os.path.join(ROOT, "scripts/man.sh"), "--markdown", "docs/man/gpumemtrace.1.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [(heading, re.findall(r"^- `(\w+)`: .*; gpumemtrace-", rows, re.M)) for heading, rows in re.findall(r"^### (.*)\n\n((?:- `\w+`: .*gpumemtrace-\w+\(1\)\n)+)", page, re.M)] == named
    zsh = ok("--completions", "zsh")
    lists = re.findall(r"\tlisted=\((.*?)\n\t\)\n\t_describe -t \S+ '(.*?)' listed", zsh, re.S)
    assert [(heading, re.findall(r"^\t\t'(\w+):", rows, re.M)) for rows, heading in lists] == named


def test_completions_in_bash(tmp_path):
    """The shell itself is asked: all commands, each one's options, values that can be named, and files where no option
    can be meant."""
    (tmp_path / "gpumemtracetester").touch(0o755)
    said = subprocess.run(["bash", "-c", COMPLETE, "bash", TOOL, *COMMANDS], capture_output=True, text=True, check=True,
                          env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    first, *values, rest = said.stdout.split("\n", 6)
    rest = rest.splitlines()
    assert values == ["perfetto pprof", "activations", "python native all none", "gpumemtracetester", "recover"]
    assert first.split() == COMMANDS + ["help", "--help", "--version"]
    for command, options, nothing in zip(COMMANDS, rest[::2], rest[1::2], strict=True):
        assert set(options.split()) == options_of(command) and nothing == ""


def test_completions_for_zsh(tmp_path):
    script = ok("--completions", "zsh")
    for command in COMMANDS:
        part = re.search(rf"^\t{command}\) _arguments(.*?) ;;$", script, re.M | re.S).group(1)
        assert set(re.findall(r"(--[\w-]+)(?:\[|\}'\[)", part)) == options_of(command)
    if shutil.which("zsh"):
        (tmp_path / "_gpumemtrace").write_text(script)
        assert subprocess.run(["zsh", "-n", tmp_path / "_gpumemtrace"]).returncode == 0


def test_completions_of_another_shell():
    assert_refused(run("--completions", "fish"), 2)
    assert_refused(run("--completions"), 2)
