# SPDX-License-Identifier: Apache-2.0
"""peak and flame: the same bytes as `live`, by the frames of each block's stack."""
import collections
import json
import os
import subprocess

import pytest

from test_cli import HOSTILE, MIB, TOOL, answer, assert_refused, make, ok, run, sample  # noqa: F401


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A recording of real training, one for all tests here."""
    from conftest import Programs
    return str(Programs(tmp_path_factory.mktemp("trained")).traced("train.py", "truth.json", "gpt2"))


def stacks_of(recording):
    return {s["stack"]: s["frames"] for s in map(json.loads, ok("stack", recording, "--all", "--json").splitlines())}


def folded(*args):
    """Frames -> bytes of the folded stacks."""
    out = {}
    for line in ok("flame", *args).splitlines():
        frames, size = line.rsplit(" ", 1)
        assert tuple(frames.split(";")) not in out
        out[tuple(frames.split(";"))] = int(size)
    return out


def python_name(frame):
    return f"{frame['function']} ({os.path.basename(frame['file'])}:{frame['line']})"


@pytest.mark.parametrize("at", ["peak", "end", "mark:mark_gpt2_forward#2"])
def test_folded_stacks_are_those_of_the_blocks(trained, at):
    stacks, want = stacks_of(trained), collections.Counter()
    live = answer("live", trained, "--at", at)
    for b in live["blocks"]:
        frames = [python_name(f) for f in stacks.get(b["stack"], []) if f["kind"] == "python"]
        want[tuple(reversed(frames))] += b["size"]
    said = folded(trained, "--at", at)
    python = {k: n for k, n in said.items() if not k[0].endswith("(backward)") and not k[0].startswith("(no")}
    assert python == {k: n for k, n in want.items() if k}
    assert sum(said.values()) == live["bytes"]
    inverted = folded(trained, "--at", at, "--inverted")
    assert {tuple(reversed(k)): n for k, n in inverted.items()} == said


def test_native_frames(trained):
    both, native = folded(trained, "--frames", "both"), folded(trained, "--frames", "native")
    assert sum(both.values()) == sum(native.values()) == answer("live", trained)["bytes"]
    assert any("CUDACachingAllocator" in k[-1] for k in native)
    assert any("(train.py:" in k[0] or "(train.py:" in "".join(k) for k in both)
    assert not any("(train.py:" in "".join(k) for k in native)


def test_modules_have_the_bytes_of_modules(trained):
    time = answer("modules", trained)["time_ns"]
    tree = answer("modules", trained, "--at", time)
    said = folded(trained, "--by", "module", "--class", "activations", "--at", time)
    assert sum(said.values()) == tree["bytes"]
    outside = said.pop(("(outside of modules)",), 0)
    assert outside == tree["outside_bytes"]
    top = collections.Counter()
    for frames, n in said.items():
        top[frames[0]] += n
    assert top == {m["name"]: m["bytes"] for m in tree["modules"] if not m["parent"]}


def test_classes_are_those_of_live(trained):
    want, said = collections.Counter(), collections.Counter()
    for b in answer("live", trained)["blocks"]:
        want[b["category"].replace("_", " ")] += b["size"]
    for frames, n in folded(trained, "--classes").items():
        said[frames[0]] += n
    assert said == want
    one = answer("flame", trained, "--class", "optimizer_state")
    assert one["bytes"] == want["optimizer state"] == sum(s["bytes"] for s in one["stacks"])


def test_a_class_that_is_not_there_is_said(trained):
    done = subprocess.run([TOOL, "flame", trained, "--class", "kv_cache"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "" and "nothing of class kv_cache" in done.stderr


def test_hostile_names(make):
    evil = HOSTILE.replace("train.py <module>", "\">]]>&.py <mo;du&le><script>alert(1)</script>")
    recording = make(evil, "evil.gmt")
    assert len(folded(recording, "--at", "end")) == len({";".join(k) for k in folded(recording, "--at", "end")})
    assert "<mo,du&le>" in ok("flame", recording, "--at", "end")


@pytest.mark.parametrize("args, says", [(["--frames", "some"], "some"), (["--by", "x"], "--by"), (["--class", "x"], '"x"'),
                                        (["--at", "noon"], "noon")])
def test_wrong_use(sample, args, says):
    done = run("flame", sample, *args)
    assert_refused(done, 2)
    assert says in done.stderr


def test_peak(sample):
    said = answer("peak", sample)
    assert (said["device"], said["bytes"], said["time_ns"], said["seq"]) == (0, 14 * MIB, 140, 7)
    assert (said["reserved_bytes"], said["total_bytes"]) == (20 * MIB, 80 * MIB)
    assert said["categories"] == {"parameters": 4 * MIB, "activations": 8 * MIB, "unknown": 2 * MIB}
    assert [(x["class"], x["function"], x["line"], x["bytes"], x["blocks"]) for x in said["lines"]] == [
        ("activations", "Model.forward", 40, 8 * MIB, 1), ("parameters", "<module>", 10, 4 * MIB, 1),
        ("unknown", "Model.forward", 40, 2 * MIB, 1)]


def test_peak_is_that_of_report(trained):
    peak, device = answer("peak", trained), answer("report", trained)["devices"][0]
    assert peak["bytes"] == device["peak_bytes"] == sum(x["bytes"] for x in peak["lines"])
    assert peak["categories"] == device["categories_at_peak"]
    text = ok("peak", trained)
    assert max(map(len, text.splitlines())) <= 80 and len(text.splitlines()) < 20
    assert peak["text"] == answer("steps", trained)["peak"]["text"]
