# SPDX-License-Identifier: Apache-2.0
"""Programs of tests/fit/cases.py as a person edits them by what `fit --make-it-fit` says, and the same with the change made from outside:
`edited.py FOLDER [NUMBER...]` prints a line of JSON for each, with both peaks. One process imports PyTorch on a simulated device; each
program is a child of it."""
import contextlib
import io
import json
import os
import sys
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASES = HERE.parent / "fit/cases.py"
LOSS = "            loss = call(model, batch)\n"
ON_HOST = LOSS, "            with torch.autograd.graph.save_on_cpu():\n                loss = call(model, batch)\n"
STEP = "    optimizer.step()\n"
STEP_ON_HOST = STEP, """    homes = {p: p.data for p in model.parameters() if p.grad is not None}
    for p in homes:
        gradient, p.grad = p.grad.cpu(), None
        p.data = p.data.cpu()
        p.grad = gradient
    optimizer.step()
    for p, home in homes.items():
        home.copy_(p.data)
        p.grad, p.data = None, home
"""
IN_CHUNKS = LOSS, """            from torch.utils.checkpoint import checkpoint
            inputs = batch()

            def part(h, y):
                return nn.functional.cross_entropy(model.lm_head(h).float(), y, reduction="sum")

            hidden = model.model(inputs["input_ids"]).last_hidden_state
            labels = nn.functional.pad(inputs["labels"], (0, 1), value=-100)[..., 1:]
            parts = zip(hidden.reshape(-1, hidden.shape[-1]).chunk(8), labels.reshape(-1).chunk(8))
            loss = sum(checkpoint(part, h, y, use_reentrant=False) for h, y in parts) / labels.numel()
"""

# name, change, (text of cases.py, what stands there instead)...
EDITED = [
    ("mlp-large-batch", "batch=1/2@16384", ("mlp(), rows(16384), {}", "mlp(), rows(8192), dict(accumulate=2)"),
     ("loss.backward()", '(loss / how.get("accumulate", 1)).backward()')),
    ("mlp", "fused", ("mlp(), rows(512), {}", "mlp(), rows(512), dict(settings=dict(lr=1e-3, fused=True))")),
    ("mlp", "foreach=off", ("mlp(), rows(512), {}", "mlp(), rows(512), dict(settings=dict(lr=1e-3, foreach=False))")),
    ("lstm", "save_on_cpu", ON_HOST),
    ("cnn", "parameters=bf16", ("cnn(), pictures(8), {}", "cnn(), pictures(8), dict(dtype=torch.bfloat16)")),
    ("mlp-large-batch", "state_on_cpu", STEP_ON_HOST),
    ("bert", "autocast=bf16", ("encoder, labelled(8, 256), {}", "encoder, labelled(8, 256), dict(autocast=True)")),
    ("gpt2", "checkpoint=GPT2Block", ('"gpt2": (causal("GPT2"), labelled(4, 512), {})', '"gpt2": (causal("GPT2"), labelled(4, 512), dict(checkpoint=True))')),
    ("gpt2-eager", "attention=sdpa", ('attn_implementation="eager"', 'attn_implementation="sdpa"')),
    ("llama-keep-grads", "zero_grad=none", ("labelled(2, 512), dict(keep=True)", "labelled(2, 512), {}")),
    ("llama-wide-vocabulary", "loss=chunks", IN_CHUNKS),
    ("t5", "save_on_cpu", ON_HOST),
]


def edit(edits):
    text = CASES.read_text()
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def run(name, text, change, folder):
    """The peak of a child that runs it, -1 if it failed."""
    folder.mkdir()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        result = folder / "peak"
        return int(result.read_text()) if result.exists() else -1
    try:
        import torch
        if change:
            sys.path.insert(0, str(HERE.parents[1] / "python/gpumemtrace"))
            os.environ["GPUMEMTRACE_WITH"] = change
            from changes.changes_start import start
            start(folder)
            sys.path.pop(0)
        sys.argv = [str(CASES), name]
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, str(CASES), "exec"), {"__name__": "__main__"})
        (folder / "peak").write_text(str(torch.cuda.max_memory_allocated()))
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(0)


def main():
    import torch._dynamo  # noqa: F401, as the first optimizer does
    with contextlib.suppress(ImportError):
        from transformers import AutoModelForCausalLM, BertForMaskedLM, GPT2LMHeadModel, LlamaForCausalLM, T5ForConditionalGeneration  # noqa: F401
    folder = Path(sys.argv[1])
    for i in map(int, sys.argv[2:] or range(len(EDITED))):
        name, change, *edits = EDITED[i]
        peaks = [run(name, text, made, folder / f"{i}.{kind}") for kind, text, made in (("plain", CASES.read_text(), ""), ("edited", edit(edits), ""), ("made", CASES.read_text(), change))]
        print(json.dumps({"program": name, "change": change, **dict(zip(("plain", "edited", "made"), peaks))}), flush=True)


if __name__ == "__main__":
    main()
