# SPDX-License-Identifier: Apache-2.0
"""known_changes.py FOLDER [--write] [--there] [NAME...]: what `diff` says of two recordings of one program, of which one was changed from
outside in a known way, or not at all. FOLDER: recordings of the programs. --write: the table of docs/conclusions.md."""
import argparse
import collections
import copy
import importlib
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "future"), str(HERE.parents[1] / "python/gpumemtrace")]

from changes import parse  # noqa: E402
from programs import ROOT, programs  # noqa: E402
from record import TOOL  # noqa: E402

sys.path.remove(str(HERE.parents[1] / "python/gpumemtrace"))  # a module there is called transformers

PAGE, BEGIN, END = ROOT / "docs/conclusions.md", "<!-- diff -->\n", "<!-- end of diff -->\n"
NAMES = ["future/kept_outputs", "future/teacher", "future/micro_batches", "future/evaluation_with_graphs", "future/two_players", "future/words_one_by_one",
         "advise/gradients_of_two_tasks", "advise/running_total", "future/answers_before_the_update", "future/contrast_in_the_loop",
         *(f"frameworks/{name}" for name in ("ddpm_train", "diffusers_train", "lightning_fit", "mixtral", "monai_segment", "open_clip_train", "pyg", "sentence_train",
                                             "smp_train", "timm_train", "trainer", "trl_dpo", "trl_sft", "x_transformers_train")), "fit/lstm", "fit/t5", "fit/vit"]
# recorded programs that differ in one way: old, new, and the sentences that may be said of it
PAIRS = [("fit/gpt2", "fit/gpt2-" + name, causes) for name, *causes in (
    ("sgd", "optimizer"), ("momentum", "optimizer"), ("bf16", "precision"), ("autocast", "casts"), ("checkpoint", "recompute"), ("fused",), ("loop",),
    ("eager",), ("accumulate", "scale", "backwards"), ("long",))] + [
    ("fit/mlp", "fit/mlp-large-batch", ["scale"]), ("fit/mlp", "fit/mlp-rmsprop", ["optimizer"]),
    ("reports/kfold/fixed", "reports/kfold/broken", ["idle", "kept"]), ("reports/k1_dead_model/fixed", "reports/k1_dead_model/broken", ["idle"]),
    ("reports/densify_graph/fixed", "reports/densify_graph/broken", ["kept"]), ("reports/cached_loss/fixed", "reports/cached_loss/broken", ["backwards"]),
    ("reports/k8_stored_error/fixed", "reports/k8_stored_error/broken", []), ("reports/micro_outputs/fixed", "reports/micro_outputs/broken", []),
    ("reports/resume_dict/fixed", "reports/resume_dict/broken", []), ("reports/sliding_window/fixed", "reports/sliding_window/broken", []),
    ("reports/k9_grad_stats/fixed", "reports/k9_grad_stats/broken", []), ("reports/trl_logps/fixed", "reports/trl_logps/broken", []),
    ("reports/bge_sparse/fixed", "reports/bge_sparse/broken", []), ("reports/frozen_tower/fixed", "reports/frozen_tower/broken", [])]
FACTS = {"line", "function", "moved", "peak", "rounding", "reserved", "gradients"}  # figures of lines; no cause is given for them
TINY = 1000  # of the peak: such a finding says how many bytes more or less, and is right
SMALL = 100  # of the peak: a change that does less is not missed


# ---- changes, by the sentences that may be said of each; the first must be ----

CHANGES = {"unchanged": (), "again": ()}


def change(*causes):
    def note(function):
        CHANGES[function.__name__] = causes
        return function
    return note


def around_models(around):
    from changes import changes_places
    changes_places.around_calls(around, outermost=True)


def make(text):
    """As `run --with` does."""
    made = parse(text)
    module, _, function = made.row.make.partition(":")
    getattr(importlib.import_module(f"changes.{module}"), function)(made, lambda times=1: None, lambda words: None)


@change("recompute")
def checkpointed():
    make("checkpoint=Layer")


@change()
def fused():
    make("fused")


@change()
def without_foreach():
    make("foreach=off")


@change("kept_gradients", "optimizer")  # there may be less state of gradients that are none
def set_to_zero():
    import torch
    for cls in torch.optim.Optimizer, torch.nn.Module:
        cls.zero_grad = lambda self, *_, plain=cls.zero_grad, **__: plain(self, set_to_none=False)


@change("optimizer")
def plain_sgd():
    import torch
    for name in "Adam", "AdamW":
        setattr(torch.optim, name, lambda params, *_, **__: torch.optim.SGD(params, lr=1e-3))


@change("casts")
def autocast():
    import torch

    def around(module, call, args, kwargs):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return call(*args, **kwargs)
    around_models(around)


@change("precision")
def half_precision():
    """All tensors that the program makes in float32, its weights too, are in bfloat16."""
    import torch
    torch.set_default_dtype(torch.bfloat16)


@change("trained", "optimizer")
def half_frozen():
    import torch
    plain = torch.optim.Optimizer.__init__

    def begin(self, params, *args, **kwargs):
        params = list(params)
        for p in params[:len(params) // 2] if isinstance(params[0], torch.Tensor) else ():
            p.requires_grad_(False)
        plain(self, params, *args, **kwargs)
    torch.optim.Optimizer.__init__ = begin


@change("kept")
def results_in_a_list():
    results = []

    def around(module, call, args, kwargs):
        out = call(*args, **kwargs)
        results.append(out.detach())
        return out
    around_models(around)


@change("model")
def twice_the_layers():
    import torch
    plain = torch.nn.Sequential.__init__

    def begin(self, *layers):
        plain(self, *(c for x in layers for c in ((x, copy.deepcopy(x)) if type(x).__name__ == "Layer" else (x,))))
    torch.nn.Sequential.__init__ = begin


@change("scale")
def half_the_rows():
    import torch
    for name in "randn", "rand", "randint":
        def made(*args, plain=getattr(torch, name), **kwargs):
            at = next((i for i, a in enumerate(args) if isinstance(a, (tuple, list))), 0)
            sizes = [*args[at]] if args and isinstance(args[at], (tuple, list)) else [*args]
            if "cuda" not in str(kwargs.get("device")) or sizes[0] < 4:
                return plain(*args, **kwargs)
            sizes[0] //= 2
            return plain(*(sizes if isinstance(args[at], int) else (*args[:at], sizes, *args[at + 1:])), **kwargs)
        setattr(torch, name, made)


@change("reach", "trained", "optimizer")
def detached_in_the_middle():
    import torch

    def forward(self, x):
        for i, layer in enumerate(self):
            x = layer(x.detach() if i == len(self) // 2 and i else x)
        return x
    torch.nn.Sequential.forward = forward


@change("recorded")
def evaluated_without_graph():
    import torch

    def around(module, call, args, kwargs):
        with torch.set_grad_enabled(torch.is_grad_enabled() and module.training):
            return call(*args, **kwargs)
    around_models(around)


def recorded_at(folder, name):
    return folder / f"{name.replace('/', '+')}.gmt"


def changed_at(folder, name, changed):
    return folder / "changes" / f"{name.replace('/', '+')}@{changed}.gmt"


# ---- one process makes all recordings of a program ----

def record_changes(name, folder, only=()):
    """Each by a child of the process that has torch."""
    import torch
    import torch._dynamo  # noqa: F401, as the first optimizer does
    _, program, *arguments = programs()[name]
    for changed in only or CHANGES:
        path = changed_at(folder, name, changed)
        if path.exists():
            continue
        child = os.fork()
        if not child:
            sys.argv = [program, *arguments]
            sys.path.insert(0, str(Path(program).parent))
            globals().get(changed, int)()
            runpy.run_path(program, run_name="__main__")
            sys.exit(0)
        status = os.waitpid(child, 0)[1]
        if (made := path.with_name(f"{child}.gmt")).exists():
            made.rename(path if not status else path.with_suffix(".failed"))


def run_all(names, folder, only=()):
    build = Path(TOOL).parent
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
    env.update(LD_PRELOAD=f"{build}/libgpumemtrace.so:{build}/libsimgpu.so", LD_LIBRARY_PATH=str(build / "simgpu"), SIMGPU_CARD="h100-80g",
               GPUMEMTRACE_OUTPUT=f"{folder}/changes/%p.gmt", OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    for name in names:
        subprocess.run([sys.executable, __file__, str(folder), name, "--record", *only], env=env, cwd=folder, check=True, capture_output=True)


# ---- what is said ----

def kind_of(finding):
    kept = finding["cause"] == "gradients" and ("kept from step" in finding["text"] or "freed between steps" in finding["text"])
    return "kept_gradients" if kept else finding["cause"]


def judge_pair(old, new, causes, same=False):
    """(cause, "true" or "false" or "missed" or "fact", words)"""
    doc = json.loads(subprocess.run([TOOL, "diff", str(old), str(new), "--json"], check=True, capture_output=True, text=True).stdout)
    said = set()
    for f in doc["findings"]:
        kind = kind_of(f)
        said.add(kind)
        if kind in FACTS or abs(f["delta"]) < doc["peak_old"] / TINY and not same:
            yield kind, "false" if same and f["delta"] else "fact", f["text"]
        else:
            yield kind, "true" if kind in causes else "false", f["text"]
    if causes and not said & set(causes) and abs(doc["delta"]) > doc["peak_old"] / SMALL:
        yield causes[0], "missed", f"{doc['peak_old'] >> 20} -> {doc['peak_new'] >> 20} MiB: " + (doc["findings"] or [{"text": "nothing"}])[0]["text"]


def pairs(names, folder):
    """(old, new, causes, whether nothing was changed)"""
    for name in names:
        base, *others = (changed_at(folder, name, changed) for changed in CHANGES)
        yield from ((base, path, CHANGES[changed], changed == "again") for changed, path in zip([*CHANGES][1:], others))
    for old, new, causes in PAIRS:
        yield recorded_at(folder, old), recorded_at(folder, new), causes, False


def table(found):
    rows = collections.defaultdict(collections.Counter)
    for kind, so, *_ in found:
        rows[kind][so] += 1
    return sorted(rows.items())


def write(found, count):
    page = PAGE.read_text()
    text = f"\n{count} pairs of recordings, each compared in both directions.\n\n| sentence | said | true | false | missed |\n|---|---:|---:|---:|---:|\n"
    text += "".join(f"| {kind} | {n.total() - n['missed']} | {n['true'] + n['fact']} | {n['false']} | {n['missed']} |\n" for kind, n in table(found))
    PAGE.write_text(page[:page.index(BEGIN)] + BEGIN + text + "\n" + page[page.index(END):])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--there", action="store_true", help="only what is recorded already")
    parser.add_argument("--record", nargs="*", help="only records, with these changes or with all")
    args = parser.parse_args()
    folder, names = Path(args.folder).resolve(), args.names or NAMES
    if args.record is not None:
        for name in names:
            record_changes(name, folder, args.record)
        return
    (folder / "changes").mkdir(parents=True, exist_ok=True)
    if not args.there:
        run_all(names, folder)
    found, count = [], 0
    for old, new, causes, same in pairs(names, folder):
        if old.exists() and new.exists():
            count += 1
            for a, b in (old, new), (new, old):
                found += [(kind, so, f"{a.stem} {b.stem}", words) for kind, so, words in judge_pair(a, b, causes, same)]
    for kind, so, where, words in found:
        if so in ("false", "missed"):
            print(f"{so.upper()} {kind} {where}: {words}")
    for kind, n in table(found):
        print(f"{kind:14} said {n.total() - n['missed']:4} true {n['true'] + n['fact']:4} false {n['false']:4} missed {n['missed']:4}")
    if args.write:
        write(found, count)


if __name__ == "__main__":
    main()
