# SPDX-License-Identifier: Apache-2.0
"""All changes: one row each."""
from __future__ import annotations

import difflib
from typing import Tuple

from .changes_row import Change, Row
from .changes_values import class_every, nothing, parts_of_rows, place_or, setting, word


class WrongChange(ValueError):
    """One sentence."""


ROWS: Tuple[Row, ...] = (
    Row("checkpoint", "CLASS[/K]", class_every, "changes_saved:checkpoint_class", ("checkpoint",), 1.3,
        "the forward pass of these modules is computed twice",
        "checkpointed {n} calls of {class}{step}", "no module of class {class} was called in a forward pass with a graph",
        "from torch.utils.checkpoint import checkpoint\n"
        "x = checkpoint(block, x, use_reentrant=False)  # in place of x = block(x), for each {class}",
        {"transformers": "gradient_checkpointing=True", "Lightning": "FSDPStrategy(activation_checkpointing_policy={{class}})"}),
    Row("save_on_cpu", "", nothing, "changes_saved:save_on_cpu", ("offload_activations",), 2.0,
        "saved tensors are copied to the host and back in every step",
        "kept {n} saved tensors on the host{step}", "no tensor was saved for backward",
        "with torch.autograd.graph.save_on_cpu(pin_memory=True):\n    loss = model(x)  # the forward pass and the loss", {}, "exact"),
    Row("batch", "1/N[@ROWS]", parts_of_rows, "changes_batch:batch_in_parts", ("smaller_batch",), 1.05,
        "N times as many passes, each of fewer rows",
        "{n} loaders or batches had {part} of their rows, and the optimizer makes its step for as many rows as before",
        "no DataLoader gave batches of more than one row",
        "for i, batch in enumerate(loader):  # batch_size divided by N\n    (loss_of(batch) / N).backward()\n"
        "    if (i + 1) % N == 0:\n        optimizer.step()\n        optimizer.zero_grad()",
        {"transformers": "per_device_train_batch_size, gradient_accumulation_steps", "Lightning": "Trainer(accumulate_grad_batches=N)"}),
    Row("fused", "", nothing, "changes_optimizer:fused", ("fused_optimizer",), 1.0, "nothing: one kernel updates all parameters",
        "made {n} optimizers with fused=True", "no optimizer of torch.optim that takes fused=True was made",
        "torch.optim.AdamW(model.parameters(), fused=True)", {"transformers": 'optim="adamw_torch_fused"'}),
    Row("foreach", "off", word("off"), "changes_optimizer:foreach_off", ("foreach_off",), 1.05, "a kernel for each parameter in the optimizer's step",
        "made {n} optimizers with foreach=False", "no optimizer of torch.optim that takes foreach was made",
        "torch.optim.AdamW(model.parameters(), foreach=False)", {}),
    Row("zero_grad", "none", word("none", "after_step"), "changes_optimizer:set_to_none", ("set_to_none", "idle_gradients"), 1.0, "nothing",
        "freed gradients {n} times, right after the optimizer's step", "no optimizer made a step",
        "optimizer.step()\noptimizer.zero_grad(set_to_none=True)", {}, "exact"),
    Row("no_grad", "FILE:LINE or frozen", place_or("frozen"), "changes_saved:no_grad", ("no_grad", "frozen_graph"), 1.0, "nothing",
        "ran {n} calls of modules without a graph{step}", "no module was called there",
        "with torch.no_grad():\n    out = model(x)", {}, "exact"),
    Row("state", "cpu", word("cpu"), "changes_optimizer:step_on_host", ("offload_state", "state_elsewhere"), 1.5,
        "the optimizer's step runs on the host; gradients and weights are copied",
        "made {n} steps of optimizers on the host", "no optimizer made a step",
        "# weights and gradients go to the host for optimizer.step(), and the weights back", {"DeepSpeed": '"offload_optimizer": {"device": "cpu"}'}),
    Row("allocator", "SETTINGS", setting("expandable_segments:True"), "PYTORCH_CUDA_ALLOC_CONF", ("allocator",), 1.0, "nothing",
        "", "", "PYTORCH_CUDA_ALLOC_CONF={value}  # in the environment", {}, "exact"),
    Row("cublas_workspace", "SETTINGS", setting(":4096:2"), "CUBLAS_WORKSPACE_CONFIG", ("less_workspace",), 1.0, "some products choose slower kernels",
        "", "", "CUBLAS_WORKSPACE_CONFIG={value}  # in the environment", {}),
)


def parse(text: str) -> Change:
    """Of NAME or NAME=VALUE; raises WrongChange."""
    name, equals, value = text.partition("=")
    row = next((row for row in ROWS if row.name == name), None)
    if row is None:
        near = difflib.get_close_matches(name, [r.name for r in ROWS], 1, 0.5)
        raise WrongChange(f"--with {text}: there is no change {name}; " + (f"the nearest is {near[0]}" if near else f"there are {', '.join(r.name for r in ROWS)}"))
    if ";" in text:
        raise WrongChange(f"--with {text}: a value cannot have a semicolon")
    try:
        return Change(text, row, row.read(value if equals else None))
    except ValueError as error:
        raise WrongChange(f"--with {text}: {name} {error}") from None
