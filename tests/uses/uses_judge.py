# SPDX-License-Identifier: Apache-2.0
"""uses_judge.py [--sim CARD] [--json] PROGRAM [ARGUMENT]...: is the memory that operators of PyTorch read and write named by the launches,
copies and sets that they make? What operators were given comes from PyTorch's own dispatcher (watch/sitecustomize.py).

An operator that makes no launch, copy or set is left out (views, shapes). NOT_READ has the arguments that no kernel reads."""
import argparse
import bisect
import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("GPUMEMTRACE_TEST_BUILD", HERE.parents[1] / "build"))
TOOL = str(BUILD / "gpumemtrace")
USES = ("use", "transfer", "graph_launch")

# Operator and argument: why no kernel reads it.
NOT_READ = {
    ("aten.zeros_like.default", "self"): "its shape alone",
    ("aten.ones_like.default", "self"): "its shape alone",
    ("aten.empty_like.default", "self"): "its shape alone",
    ("aten.full_like.default", "self"): "its shape alone",
    ("aten.rand_like.default", "self"): "its shape alone",
    ("aten.randn_like.default", "self"): "its shape alone",
    ("aten.new_zeros.default", "self"): "its type and device alone",
    ("aten.new_ones.default", "self"): "its type and device alone",
    ("aten.new_full.default", "self"): "its type and device alone",
    ("aten.new_empty.default", "self"): "its type and device alone",
    ("aten.nll_loss_backward.default", "self"): "its shape alone: the gradient goes to the places of the targets",
    ("aten.nll_loss2d_backward.default", "self"): "its shape alone: the gradient goes to the places of the targets",
    ("aten.native_layer_norm_backward.default", "bias"): "its gradient is a sum of the result's",
    ("aten.cudnn_batch_norm_backward.default", "running_mean"): "the batch's own mean was saved",
    ("aten.cudnn_batch_norm_backward.default", "running_var"): "the batch's own variance was saved",
    ("aten._scaled_dot_product_cudnn_attention.default", "result 6"): "the random state, without dropout",
    ("aten._scaled_dot_product_cudnn_attention.default", "result 7"): "the random state, without dropout",
    ("aten._scaled_dot_product_cudnn_attention_backward.default", "philox_seed"): "the random state, without dropout",
    ("aten._scaled_dot_product_cudnn_attention_backward.default", "philox_offset"): "the random state, without dropout",
    ("aten.avg_pool2d_backward.default", "self"): "its shape alone",
    ("aten.max_pool2d_with_indices_backward.default", "self"): "its shape alone: the indices say where",
    ("aten.convolution_backward.default", "weight"): "only if the input's gradient is asked for",
    ("aten.convolution_backward.default", "input"): "only if the weight's gradient is asked for",
    ("aten.randint_like.default", "self"): "its shape alone",
    ("aten.type_as.default", "other"): "its type alone",
    ("aten._adaptive_avg_pool2d_backward.default", "self"): "its shape alone",
    ("aten._cudnn_rnn.default", "dropout_state"): "the random state, without dropout",
    ("aten._cudnn_rnn_backward.default", "dropout_state"): "the random state, without dropout",
    ("aten._embedding_bag_backward.default", "indices"): "a sparse gradient takes them as they are",
    ("aten._embedding_bag_backward.default", "offsets"): "which bag an index is of was saved",
    ("aten._embedding_bag_backward.default", "bag_size"): "the mean alone divides by it",
    ("aten.native_batch_norm_backward.default", "input"): "in evaluation, only if the weight's gradient is asked for",
    ("aten.native_batch_norm_backward.default", "running_mean"): "in evaluation, only if the weight's gradient is asked for",
}


def places(event):
    """Addresses of a record `use` (format/FORMAT.md, 5.4)."""
    first = event["addr"]
    words = [event["size"], event["size"] >> 32, event["arg0"], event["arg0"] >> 32, event["arg1"] >> 32]
    found = [first] if first else []
    for w in words:
        w &= 0xFFFFFFFF
        if not first or not w:
            break
        found.append((first // 256 + (w - (1 << 32) if w >> 31 else w)) * 256)
    return found


def record(program, folder, card):
    """Runs it, on the machine's own GPU if no card is named; the recording and what its operators were given."""
    recording, log = folder / "run.gmt", folder / "operators"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_"))}
    env.update(PYTHONPATH=f"{HERE / 'watch'}:{env.get('PYTHONPATH', '')}", GPUMEMTRACE_TEST_OPERATORS=str(log), OMP_NUM_THREADS="1")
    done = subprocess.run([TOOL, "run", *(["--sim", card] if card else []), "-q", "-o", str(recording), "--", sys.executable, *program], env=env, cwd=folder,
                          capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise RuntimeError(f"{program} failed: {done.stdout[-1500:]}{done.stderr[-3000:]}")
    return recording, log


class Blocks:
    """Lives of the framework's blocks, by address and time."""

    def __init__(self):
        self.begins, self.live, self.lives = [], {}, []

    def alloc(self, e):
        if e["addr"] not in self.live:
            bisect.insort(self.begins, e["addr"])
        self.live[e["addr"]] = {"addr": e["addr"], "size": e["size"], "used": None, "given": None, "by": None}
        self.lives.append(self.live[e["addr"]])

    def free(self, e):
        if self.live.pop(e["addr"], None):
            self.begins.pop(bisect.bisect_left(self.begins, e["addr"]))

    def at(self, address):
        i = bisect.bisect_right(self.begins, address) - 1
        b = self.live[self.begins[i]] if i >= 0 else None
        return b if b and address < b["addr"] + b["size"] else None


def events(recording):
    with subprocess.Popen([TOOL, "dump", "--json", str(recording)], stdout=subprocess.PIPE, text=True) as dump:
        for line in dump.stdout:
            yield json.loads(line)


def judge(recording, log):
    """Counts of tensors (of operators that use memory) that launches named or missed, of places beside them, and of last uses."""
    with open(log) as f:
        lines = f.readlines()
    # The recording begins with the first CUDA call, maybe inside an operator.
    marks = sum(e["kind"] == "mark" and e["name"] == "operator ends" for e in events(recording))
    said = map(json.loads, lines[len(lines) - marks:])
    blocks, total, missed, beside = Blocks(), collections.Counter(), collections.Counter(), collections.Counter()
    running = collections.defaultdict(list)  # by thread, since operators call others
    number = 0
    for e in events(recording):
        kind, thread = e["kind"], e["thread"]
        if kind == "block_alloc":
            blocks.alloc(e)
        elif kind == "block_free":
            blocks.free(e)
        elif kind == "mark" and e["name"] == "operator begins":
            number += 1
            running[thread].append({"places": [], "launches": 0, "number": number})
        elif kind == "mark" and e["name"] == "operator ends":
            line = next(said)
            if running[thread]:
                end_operator(running[thread].pop(), line, blocks, total, missed, beside)
        elif kind in USES:
            total["launches"] += kind == "use" and not e["flags"] & 512
            total["unread"] += kind == "use" and not e["addr"] and not e["flags"] & 512
            now = running[thread][-1] if running[thread] else None
            for place in places(e) if kind == "use" else [e["addr"]]:
                block = blocks.at(place)
                total["places"] += 1
                total["no block"] += not block
                if block:
                    block["used"] = now["number"] if now else -1
                for operator in running[thread]:
                    operator["places"].append(block)
            for operator in running[thread]:
                operator["launches"] += 1
    for b in blocks.lives:
        if b["given"] is not None:
            total["last uses"] += 1
            total["last uses as said"] += b["used"] is not None and (b["used"] >= b["given"] or b["used"] == -1)
            if not (b["used"] is not None and (b["used"] >= b["given"] or b["used"] == -1)):
                missed["last use: " + b["by"]] += 1
    return total, missed, beside


def end_operator(now, said, blocks, total, missed, beside):
    if not now["launches"]:
        return
    named = {id(b) for b in now["places"] if b}
    given = set()
    tensors = [(n, m) for n, found in said["arguments"] + said["results"] for m in found]
    for name, (address, size) in tensors:
        block = blocks.at(address)
        if not block:
            continue
        given.add(id(block))
        if (said["operator"], name) in NOT_READ:
            continue
        total["tensors"] += 1
        block["given"], block["by"] = now["number"], said["operator"]
        if id(block) in named:
            total["named"] += 1
        else:
            missed[f"{said['operator']} {name}"] += 1
    for block in {id(b): b for b in now["places"] if b}.values():
        if id(block) not in given:
            beside[said["operator"]] += 1
            total["beside"] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sim", default="h100-80g", metavar="CARD")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        total, missed, beside = judge(*record([os.path.abspath(options.program[0]), *options.program[1:]], Path(folder), options.sim))
    if options.json:
        print(json.dumps({"total": total, "missed": missed, "beside": beside}))
        return
    print("%d launches (%d not read), %d places (%d in no block); %d of %d tensors named (%.3f %%), %d last uses of %d as said, %d blocks beside" % (
        total["launches"], total["unread"], total["places"], total["no block"], total["named"], total["tensors"],
        100 * total["named"] / max(1, total["tensors"]), total["last uses as said"], total["last uses"], total["beside"]))
    for name, found in (("missed", missed), ("beside", beside)):
        for what, n in found.most_common(12):
            print("    %s %6d  %s" % (name, n, what))


if __name__ == "__main__":
    main()
