# SPDX-License-Identifier: Apache-2.0
"""Ranges and marks: each begins and ends once, with its name, in the program's order."""
import pytest

pytestmark = pytest.mark.forks


def ranges(events):
    return [(e["kind"], e["name"], e["arg1"]) for e in events if e.get("kind") in ("range_begin", "range_end", "mark")]


@pytest.mark.real
@pytest.mark.matrix
def test_order_and_names(programs, tool):
    events = tool.events(programs.traced("marked.py", "cuda"))
    seen = ranges(events)
    assert seen[:11] == [
        ("range_begin", "outer", 2), ("range_begin", "named", 1), ("range_begin", "inner", 2), ("mark", "here", 2),
        ("range_end", "inner", 2), ("range_end", "named", 1), ("range_end", "outer", 2), ("range_begin", "first", 2),
        ("range_begin", "second", 2), ("range_end", "first", 2), ("range_end", "second", 2)]
    deep = seen[11:-4]
    assert [name for _, name, _ in deep] == [f"deep{i}" for i in range(64)] + [f"deep{i}" for i in reversed(range(64))]
    assert seen[-4][1] == "a" * 3000
    assert seen[-2][1] == seen[-1][1] == "café \U0001f642"
    began = [e["arg0"] for e in events if e.get("kind") == "range_begin"]
    assert len(set(began)) == len(began)
    assert sorted(began) == sorted(e["arg0"] for e in events if e.get("kind") == "range_end")
    second = [e for e in events if e.get("name") == "second"]
    assert second[0]["thread"] != second[1]["thread"]


@pytest.mark.real
def test_switched_off(programs, tool):
    seen = ranges(tool.events(programs.traced("marked.py", "cuda", GPUMEMTRACE_NVTX="off")))
    assert seen and {source for _, _, source in seen} == {1}


@pytest.mark.real
def test_ranges_alone_make_no_recording(programs):
    done = programs("marked.py", GPUMEMTRACE_OUTPUT="run.gmt")
    assert done.returncode == 0, done.stderr
    assert list(programs.folder.glob("*.gmt*")) == []


@pytest.mark.real
@pytest.mark.matrix
def test_optimizer_and_profiler_ranges(programs, tool):
    events = tool.events(programs.traced("tags.py", "truth.json", "mlp"))
    assert [e for e in events if e.get("kind") == "range_begin" and e["name"] == "mark_forward"]
    code = """
import torch
from torch.profiler import profile, ProfilerActivity
m = torch.nn.Linear(8, 8).cuda()
o = torch.optim.AdamW(m.parameters())
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
    for _ in range(2):
        m(torch.ones(2, 8, device="cuda")).sum().backward()
        o.step()
        o.zero_grad()
        p.step()
print(sum(e.self_device_memory_usage > 0 for e in p.key_averages()) > 0)
"""
    plain = programs("-c", code, traced=False)
    assert plain.stdout == "True\n", plain.stderr
    done = programs("-c", code, GPUMEMTRACE_OUTPUT="profiled.gmt")
    assert done.stdout == "True\n", done.stderr  # the framework's own profiler still hears of memory
    names = [e["name"] for e in tool.events(programs.folder / "profiled.gmt") if e.get("kind") == "range_begin"]
    assert names.count("Optimizer.step#AdamW.step") == names.count("Optimizer.zero_grad#AdamW.zero_grad") == 2
