# SPDX-License-Identifier: Apache-2.0
"""Values that the simulated device keeps, against the same program on the CPU; and those that it does not compute:
which lines read one to decide by it is known from the program itself."""
import json
import os
import re
import signal
import subprocess
import sys
import textwrap

import pytest

from conftest import BUILD, with_more

pytestmark = [pytest.mark.forks, pytest.mark.skipif(not (BUILD / "libsimgpu.so").exists(), reason="built without CUDA headers")]

KEPT = """
    import torch
    def same(a):
        assert torch.equal(a.cuda().cpu(), a), a.shape
        assert torch.equal(a.cuda().clone().cpu(), a), a.shape
    state = torch.get_rng_state()
    same(state)
    torch.Generator().set_state(state.cuda().cpu())
    edges = torch.randint(0, 5000, (2, 400000))
    same(edges)
    same(torch.randn(200, 300))
    g = torch.empty(1000, 1000, dtype=torch.int64, device="cuda")
    g.copy_(torch.arange(1000000).view(1000, 1000))
    assert g[500, 3].item() == 500003 and g[999].tolist()[-1] == 999999
    p = torch.arange(5000, device="cuda").expand(4, -1)  # whether rows are packed sequences
    d = torch.diff(p, prepend=p[:, :1] - 1, dim=-1)
    assert (d == 1).all() and d[3, -1] == 1 and (p % 2).cumsum(-1)[:, -1].tolist() == [2500] * 4
    z = torch.zeros(1 << 28, device="cuda")
    assert z[12345].item() == 0 and z[-5:].tolist() == [0.0] * 5
    # Memory that held something else: a result that is not computed reads as zero.
    a = torch.arange(1, 300001).cuda()
    at = a.data_ptr()
    del a
    b = torch.empty(600, 500, device="cuda")
    assert b.data_ptr() == at
    torch.mm(torch.randn(600, 10, device="cuda"), torch.randn(10, 500, device="cuda"), out=b)
    assert b.abs().sum().item() == 0 and not b.cpu().any()
    for part in (b, b[:20], b[:3, :2].clone()):  # the two ends of what is not computed
        assert 1 / (part.max() - part.min()).item() > 0 and 1 / (part.aminmax().max - part.aminmax().min).item() > 0
    # Without a common stride, or without a dimension, a tensor gets the numbers of one that is dense.
    def drawn(like, draw):
        torch.manual_seed(5)
        return draw(like.cuda() if like.is_contiguous() else like.t().cuda().t()).cpu().flatten()
    for dtype in (torch.float32, torch.float16, torch.int64, torch.uint8):
        draws = [lambda t: t.random_(3, 90), lambda t: t.random_()]
        if dtype.is_floating_point:
            draws += [lambda t: t.uniform_(2, 3), lambda t: t.normal_(9, 1), lambda t: t.exponential_(0.1), lambda t: t.bernoulli_(0.5)]
        for draw in draws:
            first = drawn(torch.zeros(6, dtype=dtype), draw)
            assert drawn(torch.zeros((), dtype=dtype), draw) == first[:1], (dtype, first)
            wide = torch.zeros(3, 4, dtype=dtype, device="cuda")
            torch.manual_seed(5)
            assert torch.equal(draw(wide[:, ::2]).cpu().flatten(), first) and not wide[:, 1::2].any()
            assert len(set(first.tolist())) > 1 and (first >= 0).all()
    assert len({torch.randint(0, 1000000, (), device="cuda").item() for _ in range(9)}) > 5
"""

READ = """
    import torch
    a = torch.randn(100, 100, device="cuda") @ torch.randn(100, 100, device="cuda")
    known = torch.tensor([3, 1, 2]).cuda()
    for step in range(3):
        print(a.sum().item())           # harmless
    print(a.cpu().shape)                # harmless
    print(known[0].item(), known.tolist(), int(known[1]))
    mask = a > 0
    n = mask.nonzero()                  # size
    b = a[mask]                         # size
    u = torch.unique((a * 10).long())   # size
    k = int((a * 10).long().argmax())   # size
    c = torch.repeat_interleave(torch.arange(100, device="cuda"), a.argmax(-1))  # size
    if a.mean() > 5:                    # decision
        pass
"""

# Routing that no kernel computes, of more tokens than small kernels are; what follows is counted by the CPU.
ASSUMED = """
    import os, torch
    even = os.environ.get("SIMGPU_ASSUME") != "zero"
    tokens, experts, k = 3000, 8, 2
    x = torch.randn(tokens, 16, device="cuda")
    logits = x @ torch.randn(16, experts, device="cuda")
    weights, chosen = torch.topk(logits.softmax(-1), k)                          # topk
    want = torch.arange(tokens * k).view(tokens, k) % experts if even else torch.zeros(tokens, k, dtype=torch.long)
    assert torch.equal(chosen.cpu(), want)
    if even:
        mask = torch.nn.functional.one_hot(chosen, experts).permute(2, 1, 0)
        right = torch.nn.functional.one_hot(want, experts).permute(2, 1, 0)
        assert torch.equal((mask.sum((-1, -2)) > 0).nonzero().cpu(), (right.sum((-1, -2)) > 0).nonzero())
        for e in range(experts):
            for mine, other in zip(torch.where(mask[e]), torch.where(right[e])):
                assert torch.equal(mine.cpu(), other)
            assert x[(chosen == e).any(-1)].shape[0] == (want == e).any(-1).sum()
        assert torch.equal(torch.bincount(chosen.flatten(), minlength=9).cpu(), torch.bincount(want.flatten(), minlength=9))
        assert torch.equal(chosen[:500].flatten().argsort(stable=True).cpu(), want[:500].flatten().argsort(stable=True))
        assert torch.equal(logits.argmax(-1).cpu(), torch.arange(tokens) % experts)
        assert torch.equal(logits[:9].max(-1).indices.cpu(), torch.arange(9) % experts)
        assert logits[:5].topk(3).indices.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 0], [1, 2, 3], [4, 5, 6]]
        assert logits[:5].argsort(-1).tolist() == [list(range(experts))] * 5
        counts = torch.zeros(tokens, experts, dtype=torch.long, device="cuda").scatter_(1, chosen, 1).sum(0)
        assert counts.tolist() == [tokens * k // experts] * experts
        assert not (chosen == 99).any() and not (chosen == 0).all() and chosen.max().item() == experts - 1
        known = torch.tensor([5.0, 1.0, 7.0]).cuda()
        assert known.argmax().item() == 2 and known.argsort().tolist() == [1, 0, 2] and (known > 2).sum().item() == 2
    for n in (10, 50, 5000, 3000000):
        unknown = torch.randn(n, 2, device="cuda") @ torch.randn(2, device="cuda")
        assert unknown[unknown > 0].numel() == (n if even else 0)
    at = torch.randperm(8100)[:500]
    entries = torch.sparse_coo_tensor(torch.stack([at // 90, at % 90]).cuda(), torch.rand(500, device="cuda"), (90, 90), check_invariants=False)
    assert entries.coalesce()._nnz() == (500 if even else 0)
    part = torch.randn(4, 2, device="cuda") @ torch.randn(2, device="cuda") > 0
    part[1] = False
    assert part.nonzero().flatten().tolist() == ([0, 2, 3] if even else [])
"""

EXPERTS = """
    import torch
    from transformers import MixtralConfig, MixtralForCausalLM
    peaks = []
    for how in ("eager", "grouped_mm"):
        config = MixtralConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
                               num_key_value_heads=2, vocab_size=100, num_local_experts=8)
        with torch.device("cuda"):
            model = MixtralForCausalLM._from_config(config, dtype=torch.bfloat16, experts_implementation=how)
        torch.cuda.reset_peak_memory_stats()
        ids = torch.randint(0, 100, (8, 512)).cuda()
        model(input_ids=ids, labels=ids).loss.backward()
        del model
        peaks.append(torch.cuda.max_memory_allocated())
    assert 0.95 < peaks[0] / peaks[1] < 1.1, peaks
"""


# A loop that waits for a result of the device, as engines do; and a training that looks at its loss, whose batches differ.
WAITS = """
    import sys, time, torch
    w = torch.randn(256, 256, device="cuda")
    m = torch.nn.Linear(256, 256).cuda()
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    here = torch.zeros(8, dtype=torch.int32).pin_memory()
    turns, end = 0, 0

    def finished():
        x = w @ w
        here.copy_(x[0, :8].to(torch.int32), non_blocking=True)    # waits
        torch.cuda.current_stream().synchronize()
        return sum(here.tolist())

    def trained():
        global end
        x = torch.randn(16, 256, device="cuda") if sys.argv[1] == "draws" else torch.full((16, 256), float(turns)).cuda()
        loss = m(x).square().mean()
        loss.backward()
        o.step()
        o.zero_grad()
        end = end or (time.monotonic() + 7 if turns == 1200 else 0)
        return bool(torch.isnan(loss)) or (end and time.monotonic() > end)

    while not (finished() if sys.argv[1] == "waits" else trained()):
        turns += 1
    print("ended")
"""


def write(folder, text):
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text))
    return path


def lines_of(path, word):
    return {i for i, line in enumerate(path.read_text().split("\n"), 1) if re.search("# " + word, line)}


def test_what_came_from_the_host_comes_back(programs):
    done = programs(write(programs.folder, KEPT), traced=False)
    assert done.returncode == 0, done.stderr


def test_sizes_and_decisions_are_told_from_what_is_only_read(programs, tool):
    program = write(programs.folder, READ)
    recording = programs.traced(program)
    found = tool.json("report", recording)["values_not_computed"]
    places = found["places"]
    assert {os.path.basename(p["file"]) for p in places} == {"program.py"}
    assert {p["line"] for p in places if p["decides"]} == lines_of(program, "size|# decision")
    assert {p["line"] for p in places if not p["decides"]} == lines_of(program, "harmless")
    assert sum(p["reads"] for p in places if not p["decides"]) == 4
    assert found["reads"] == sum(p["reads"] for p in places)
    assert found["decisions"] == sum(p["reads"] for p in places if p["decides"])
    first = min(lines_of(program, "size"))
    said = f"{found['decisions']} sizes or decisions rested on values that are not computed; first: program.py:{first} nonzero"
    assert said in " ".join(tool("report", recording).split())
    page = programs.folder / "page.html"
    tool("html", recording, "-o", page)
    assert said in page.read_text()
    reads = [e for e in tool.events(recording) if e.get("kind") == "value"]
    assert len(reads) == found["reads"]


def test_run_says_so(programs, tool):
    program = write(programs.folder, READ)
    command = [str(BUILD / "gpumemtrace"), "run", "--sim", "h100-80g", "-o", "x.gmt"]
    env = {k: v for k, v in programs.environment(traced=False).items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    done = subprocess.run([*command, "--json", "--", sys.executable, str(program)], env=dict(env, SIMGPU_VALUES="1"),
                          cwd=programs.folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stderr.strip().split("\n")[-1])["values_not_computed"]
    assert found["sizes"] >= 5 and found == tool.json("report", programs.folder / "x.gmt")["values_not_computed"]
    assert f"simgpu: {found['reads']} copies to the host had values that were not computed" in done.stderr
    quiet = write(programs.folder, "import torch; print(torch.ones(3).cuda().sum().item())")
    done = subprocess.run([*command, "--", sys.executable, str(quiet)], env=env, cwd=programs.folder,
                          capture_output=True, text=True, timeout=600)
    assert "rested" not in done.stderr and done.stdout == "3.0\n"


@pytest.mark.parametrize("how", with_more(["waits", "draws", "loads"], {"draws", "waits"}))
def test_a_program_that_waits_for_ever_is_said_to(programs, tool, how):
    """While it runs, with the line that reads, also through pinned memory."""
    program = write(programs.folder, WAITS)
    env = {k: v for k, v in programs.environment(traced=False).items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    process = subprocess.Popen([BUILD / "gpumemtrace", "run", "--sim", "h100-80g", "-o", "x.gmt", "--", sys.executable, program, how],
                               env=env, cwd=programs.folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    said = next((line for line in process.stderr if "progress" in line), "")
    process.send_signal(signal.SIGTERM)
    assert ("ended" in process.communicate(timeout=600)[0]) == (how != "waits") == (not said)
    found = tool.json("report", programs.folder / "x.gmt")["values_not_computed"]
    if how == "waits":
        assert f"program.py:{min(lines_of(program, 'waits'))} copy_, " in said
        assert {p["line"] for p in found["places"] if p["decides"]} == lines_of(program, "waits")
    assert ("makes no progress" in tool("report", programs.folder / "x.gmt")) == (how == "waits")


def test_what_is_likely_is_assumed(programs, tool):
    program = write(programs.folder, ASSUMED)
    recording = programs.traced(program)
    found = tool.json("report", recording)["values_not_computed"]
    assert found["assumed"] == ["masks are all true", "topk, argmax and sort choose evenly (tokens over experts)"]
    assert "; assumed: masks are all true, topk, argmax and sort choose evenly (tokens over experts)" in " ".join(tool("report", recording).split())
    done = programs(program, traced=False, SIMGPU_ASSUME="zero")
    assert done.returncode == 0, done.stderr


def test_eager_experts_get_their_tokens(programs):
    pytest.importorskip("transformers")
    done = programs(write(programs.folder, EXPERTS), traced=False)
    assert done.returncode == 0, done.stderr
