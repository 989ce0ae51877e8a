# SPDX-License-Identifier: Apache-2.0
"""Memory by class at every event of real training: the sums are what a replay of the dumped events gives and what
PyTorch says at its marks; class by class, what `live` says at the same moment."""
import bisect
import collections
import json
import random

import pytest
from conftest import with_more

pytestmark = pytest.mark.forks


def series(tool, recording, *args):
    return tool.json("timeline", recording, "--by", "events", "--points", 1000000, *args)


def replayed(events, device):
    """(seq, time, bytes) after each event, by addresses and sizes alone."""
    lives, total = {}, 0
    for e in events:
        if e.get("kind") in ("block_alloc", "block_free") and e["device"] == device:
            total -= lives.pop(e["addr"], 0)
            if e["kind"] == "block_alloc":
                lives[e["addr"]] = e["size"]
                total += e["size"]
        yield e["seq"], e["time_ns"], total


def check_totals(tool, recording, said):
    events = [e for e in tool.events(recording) if "kind" in e]
    truth = list(replayed(events, said["device"]))
    buckets = iter(said["buckets"])
    following = next(buckets)
    shown = 0
    for i, (_, time, total) in enumerate(truth):
        if following and following["last_ns"] == time and following["last"]["bytes"] == total:
            bucket, following = following, next(buckets, None)
            shown += 1
            assert bucket["max"]["bytes"] == sum(bucket["categories_at_max"].values())
            assert bucket["min"]["bytes"] <= total <= bucket["max"]["bytes"]
        assert bucket["last"]["bytes"] == total == sum(bucket["categories_at_last"].values())
    assert following is None and shown > len(truth) / 2
    assert said["peak_bytes"] == max(total for _, _, total in truth)
    return truth


def check_moments(tool, recording, said, truth, count=50):
    times, ends = [time for _, time, _ in truth], [b["last_ns"] for b in said["buckets"]]
    chance = random.Random(1)
    for time in [said["peak_time_ns"]] + chance.sample(times, count - 1):
        bucket = said["buckets"][bisect.bisect_right(ends, time) - 1]
        live = tool.json("live", recording, "--at", time)
        classes = collections.Counter()
        for b in live["blocks"]:
            classes[b["category"]] += b["size"]
        assert bucket["categories_at_last"] == dict(classes), time
        assert bucket["last"]["bytes"] == live["bytes"]


def check_marks(tool, recording, said, torch):
    begins = [e for e in tool.events(recording) if e.get("kind") == "range_begin"]
    after = {b["last_ns"]: b["last"]["bytes"] for b in said["buckets"]}
    for mark in torch["marks"]:
        same = [e["time_ns"] for e in begins if e["name"] == mark["name"]]
        assert after[same[mark["time"] - 1]] == mark["devices"][0]["allocated"], mark["name"]


def check_moves(said):
    """Bytes move between classes at events that bring or take none: activations are let go."""
    pairs = list(zip(said["buckets"], said["buckets"][1:]))
    moved = [b for a, b in pairs if a["last"]["bytes"] == b["last"]["bytes"]
             and a["categories_at_last"] != b["categories_at_last"]]
    assert len(moved) > 20
    assert all(b["events"] == 1 for b in moved)


@pytest.mark.parametrize("tags", with_more(["on", "off"], {"off"}))
def test_every_event_of_gpt2(programs, tool, tags):
    recording = programs.traced("train.py", "truth.json", "gpt2", GPUMEMTRACE_TAGS=tags)
    said = series(tool, recording)
    truth = check_totals(tool, recording, said)
    check_moments(tool, recording, said, truth)
    check_marks(tool, recording, said, json.loads((programs.folder / "truth.json").read_text()))
    seen = {c for b in said["buckets"] for c in b["categories_at_last"]}
    if tags == "on":
        check_moves(said)
    assert seen >= {"parameters", "gradients", "optimizer_state", "activations", "backward_temporaries"}


def test_a_reduced_series_keeps_peaks(programs, tool):
    recording = programs.traced("steps.py", "gan")
    exact = series(tool, recording)
    for points in (1, 10, 333):
        said = tool.json("timeline", recording, "--points", points)
        assert len(said["buckets"]) == points and said["peak_bytes"] == exact["peak_bytes"]
        for i, bucket in enumerate(said["buckets"]):
            totals = [said["buckets"][i - 1]["last"]["bytes"] if i else 0]
            totals += [b["last"]["bytes"] for b in exact["buckets"]
                       if bucket["first_ns"] <= b["last_ns"] <= bucket["last_ns"]]
            assert (bucket["min"]["bytes"], bucket["max"]["bytes"], bucket["last"]["bytes"]) == (
                min(totals), max(totals), totals[-1])
