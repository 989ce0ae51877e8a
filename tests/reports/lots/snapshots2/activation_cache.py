# SPDX-License-Identifier: Apache-2.0
"""Activations of a model are collected by hooks for a study. The older call of the recorder keeps stacks of live blocks, and its entries have none."""
import pickle
import sys
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel

FOLDER, FIXED = Path(sys.argv[1]), sys.argv[2:] == ["fixed"]


def monitor_out_of_memory():
    torch.cuda.memory._record_memory_history(True, trace_alloc_max_entries=100_000)

    def oom_observer(device, alloc, device_alloc, device_free):
        snapshot = torch.cuda.memory._snapshot()
        with open(FOLDER / "oom_snapshot.pkl", "wb") as f:
            pickle.dump(snapshot, f)

    torch._C._cuda_attach_out_of_memory_observer(oom_observer)


class Cache:
    """The results of every layer, by name."""

    def __init__(self, model, wanted):
        self.kept = {}
        for name, module in model.named_modules():
            if wanted(name):
                module.register_forward_hook(lambda m, inputs, result, name=name: self.keep(name, result))

    def keep(self, name, result):
        result = result[0] if isinstance(result, tuple) else result
        self.kept.setdefault(name, []).append(result.detach())


monitor_out_of_memory()
model = GPT2LMHeadModel(GPT2Config(n_embd=384, n_layer=8, n_head=6, vocab_size=16000)).cuda().eval()
cache = Cache(model, (lambda n: n == "transformer.h.4") if FIXED else (lambda n: n.startswith("transformer.h.")))
try:
    with torch.no_grad():
        for prompt in range(60):
            model(torch.randint(0, 16000, (4, 256)).cuda(), use_cache=False)
finally:
    print("truth", {"prompt": prompt, "parameters": sum(p.nbytes for p in model.parameters()),
                    "kept": sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for k in cache.kept.values() for t in k}.values())},
          torch.cuda.max_memory_allocated())
