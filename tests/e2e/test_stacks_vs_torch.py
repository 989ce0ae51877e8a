# SPDX-License-Identifier: Apache-2.0
"""Stacks against PyTorch's own recorder (stacks=all) in the same run: the same Python frames, and, where
its C++ unwinder reached the thread's start, the same C++ functions."""
import functools
import json
import re
import subprocess

import pytest

STARTS = ("_start", "clone3", "clone", "start_thread")
# dladdr's answer for a function without a name in libstdc++: the name of another one.
MISNAMED = "std::error_code::default_error_condition() const"


def plain(name):
    return re.sub(r" \[clone [^]]*\]|\s", "", name)


def is_python(frame):
    return frame[0].endswith(".py") or frame[0].startswith("<")


@functools.lru_cache(None)
def names_by_address(module):
    """The compiler folds equal functions: one address may have several names."""
    listing = subprocess.run(["nm", "-C", module], capture_output=True, text=True).stdout
    by_address = {}
    for line in listing.splitlines():
        address, kind, name = line[:16], line[17:18], line[19:]
        if kind in "tTwW":
            by_address.setdefault(address, set()).add(plain(name))
    return [names for names in by_address.values() if len(names) > 1]


def same(ours, theirs, modules):
    return ours == theirs or any({ours, theirs} <= names for m in modules for names in names_by_address(m))


def cxx(names):
    """C++ functions outside of the recorders' own ends, outermost first, down to the allocator."""
    names = [plain(n) for n in reversed(names) if "::" in n and n != MISNAMED]
    for i, name in enumerate(names):
        if "DeviceCachingAllocator::" in name:
            return names[:i + 1]
    return names


def paired(events, entries):
    """Our allocations beside PyTorch's: both saw all of them, in one order."""
    ours = [e for e in events if e.get("kind") in ("block_alloc", "block_free")][:len(entries)]
    assert len(ours) == len(entries) > 50
    kinds = {"block_alloc": "alloc", "block_free": "free_requested"}
    assert [(kinds[e["kind"]], e["addr"]) for e in ours] == [(t["action"], t["addr"]) for t in entries]
    assert all(0 <= e["size"] - t["size"] < 1 << 20 for e, t in zip(ours, entries))  # theirs is what was asked
    return [(e, t) for e, t in zip(ours, entries) if t["action"] == "alloc"]


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("model", [pytest.param("mlp", marks=pytest.mark.matrix), "blocks"])
def test_same_frames(programs, tool, model):
    recording = programs.traced("stacks.py", "truth.json", model, TORCH_SYMBOLIZE_MODE="addr2line")
    pairs = paired(tool.events(recording), json.loads((programs.folder / "truth.json").read_text()))
    truths = {}
    for ours, theirs in pairs:
        truths.setdefault(ours["stack"], []).append(theirs["frames"])
    stacks = tool.stacks(recording)
    assert not any("libgpumemtrace" in f["file"] or "/shim/" in f["file"] for frames in stacks.values() for f in frames)
    full = 0
    for i, frames_of in truths.items():
        python = [(f["file"], f["line"], f["function"].rsplit(".", 1)[-1]) for f in stacks[i] if f["kind"] == "python"]
        native = cxx([f["function"] for f in stacks[i] if f["kind"] == "native"])
        modules = tuple({f["file"] for f in stacks[i] if "/libtorch" in f["file"] or "/libc10" in f["file"]})
        for frames in frames_of:
            assert python == [tuple(f) for f in frames if is_python(f)]
            theirs = [f[2] for f in frames if not is_python(f) and "/shim/" not in f[0] and "libgpumemtrace" not in f[0]]  # `stack` leaves its own out
            if theirs[-1] in STARTS:
                full += 1
                expected = cxx(theirs)
                assert len(native) == len(expected)
                assert [(a, b) for a, b in zip(native, expected) if not same(a, b, modules)] == []
    print(f"{len(pairs)} allocations, {len(truths)} stacks; C++ compared in {full}")
    # Its unwinder needs what not every build of Python has: on Debian's it gives up in some 40 % of the stacks.
    assert full > 0.25 * len(pairs)
