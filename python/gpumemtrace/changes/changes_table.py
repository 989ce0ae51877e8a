# SPDX-License-Identifier: Apache-2.0
"""The table of changes: one row each, sorted by cost."""
from __future__ import annotations

import difflib
from typing import Tuple

from .changes_row import Change, Row
from .changes_values import class_every, nothing, number, parts_of_rows, place, place_or, sdpa, setting, word


class WrongChange(ValueError):
    """The name or the value of a change is wrong; the message is one sentence."""


ROWS: Tuple[Row, ...] = (
    # ---- no cost ----
    Row("zero_grad", "none", word("none"), "none", "changes_optimizer:set_to_none", ("set_to_none", "idle_gradients"), 1.0, "nothing",
        "freed gradients right after {n} steps of optimizers", "no optimizer made a step",
        "optimizer.step()\noptimizer.zero_grad(set_to_none=True)", {}, "exact"),
    Row("no_grad", "FILE:LINE or frozen", place_or("frozen"), "frozen", "changes_saved:no_grad", ("no_grad", "frozen_graph"), 1.0, "nothing",
        "ran {n} calls of modules without a graph{step}", "no module was called there with a graph",
        "with torch.no_grad():  # {value}\n    out = model(x)", {}, "exact"),
    Row("del", "FILE:LINE", place, "", "changes_names:forgotten_before_backward", ("late_del",), 1.0, "nothing",
        "forgot names before {n} backward passes{step}", "no name held a result of that line alone before backward",
        "del x  # the result of {value}, before loss.backward()", {}, "exact"),
    Row("kept", "FILE:LINE", place, "", "changes_names:kept_on_host", ("kept", "let_go", "kept_results"), 1.0, "a copy to the host of each",
        "moved {n} kept results to the host", "no list or dictionary kept results of that line from an earlier step",
        "results.append(x.detach().cpu())  # {value}", {"transformers": "eval_accumulation_steps=1"}, "exact"),
    Row("use_cache", "off", word("off"), "off", "changes_options:cache_off", (), 1.0, "nothing", "ran {n} forward passes without a cache of keys and values{step}",
        "no model whose configuration has use_cache was called in training", "model.config.use_cache = False", {"transformers": "use_cache=False"}, "exact"),
    Row("hidden_states", "off", word("off"), "off", "changes_options:hidden_states_off", (), 1.0, "the program cannot read them",
        "ran {n} passes without output_hidden_states or output_attentions{step}", "no model whose configuration has these on was called",
        "model(..., output_hidden_states=False, output_attentions=False)", {}, "exact"),
    Row("prompt_logits", "last", word("last"), "last", "changes_options:last_logits", ("prompt_logits",), 1.0, "only the last position has logits",
        "computed the logits of one position in {n} calls", "no model that takes logits_to_keep was called under no_grad",
        "model(..., logits_to_keep=1)", {"transformers": "logits_to_keep=1"}, "other"),
    Row("logits", "FILE:LINE", place, "", "changes_options:logits_in_16_bits", ("logits_in_float32",), 1.0, "nothing: the loss computes in float32",
        "kept logits in 16 bits {n} times{step}", "that line converts nothing to float32",
        "loss = F.cross_entropy(logits, labels)  # {value}, without .float()", {}, "precision"),
    Row("attention", "sdpa[@FUNCTION]", sdpa, "sdpa", "changes_attention:fused_attention", ("attention", "fused_attention"), 1.0, "nothing: it is faster",
        "computed attention in one call {n} times{step}", "no product of queries and keys went through softmax to a product with values",
        "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)", {"transformers": 'from_pretrained(..., attn_implementation="sdpa")'}),
    Row("fused", "", nothing, "", "changes_optimizer:fused", ("fused_optimizer",), 1.0, "nothing: one kernel updates all parameters",
        "made {n} optimizers with fused=True", "no optimizer of torch.optim that takes fused=True was made",
        "torch.optim.AdamW(model.parameters(), fused=True)", {"transformers": 'optim="adamw_torch_fused"'}),
    Row("autocast_cache", "off", word("off"), "off", "changes_weights:autocast_cache", ("autocast_cache",), 1.05, "weights are converted at each use",
        "autocast without its cache {n} times{step}", "no autocast began where no graph is made",
        "with torch.no_grad(), torch.autocast(\"cuda\", cache_enabled=False):\n    out = model(x)", {}, "exact"),
    Row("allocator", "SETTINGS", setting("expandable_segments:True"), "", "PYTORCH_CUDA_ALLOC_CONF", ("allocator",), 1.0, "nothing",
        "", "", "PYTORCH_CUDA_ALLOC_CONF={value}  # in the environment", {}, "exact"),
    Row("cublas_workspace", "SETTINGS", setting(":4096:2"), ":4096:2", "CUBLAS_WORKSPACE_CONFIG", ("less_workspace",), 1.0, "some products choose slower kernels",
        "", "", "CUBLAS_WORKSPACE_CONFIG={value}  # in the environment", {}),
    # ---- fewer bits ----
    Row("frozen", "bf16", word("bf16"), "bf16", "changes_weights:frozen", (), 1.0,
        "frozen weights have 8 bits of precision; if they are made on the device, loading takes as much as before",
        "converted the weights of {n} modules that are not trained to bfloat16", "no module has weights in float32 none of which is trained",
        "for m in model.modules():  # before it moves to the device\n"
        "    if not any(p.requires_grad for p in m.parameters()):\n        m.to(torch.bfloat16)",
        {"transformers": "from_pretrained(..., dtype=torch.bfloat16)", "PEFT": "get_peft_model(model, config, autocast_adapter_dtype=True)"}, "precision"),
    Row("autocast", "bf16", word("bf16"), "bf16", "changes_weights:autocast", (), 1.0, "products have 8 bits of precision",
        "ran {n} calls of models under autocast{step}", "no module was called", "with torch.autocast(\"cuda\", dtype=torch.bfloat16):\n    loss = model(x)",
        {"transformers": "bf16=True", "accelerate": 'Accelerator(mixed_precision="bf16")', "Lightning": 'Trainer(precision="bf16-mixed")'}, "precision"),
    Row("parameters", "bf16", word("bf16"), "bf16", "changes_weights:parameters", (), 1.0, "weights, gradients and state have 8 bits of precision",
        "converted the weights of {n} modules to bfloat16", "no module has weights in float32", "model = model.to(torch.bfloat16)  # before the optimizer is made\nout = model(x.to(torch.bfloat16))",
        {"transformers": "from_pretrained(..., dtype=torch.bfloat16)", "Lightning": 'Trainer(precision="bf16-true")', "DeepSpeed": '"bf16": {"enabled": true}'}, "precision"),
    Row("state", "8bit", word("8bit"), "8bit", "changes_optimizer:state_in_8_bits", ("state_in_8_bits",), 1.05, "the optimizer's state has 8 bits",
        "made {n} optimizers with state in 8 bits", "no Adam or AdamW of torch.optim was made",
        "bitsandbytes.optim.AdamW8bit(model.parameters())", {"transformers": 'optim="adamw_bnb_8bit"'}, "precision"),
    # ---- time ----
    Row("foreach", "off", word("off"), "off", "changes_optimizer:foreach_off", ("foreach_off",), 1.05, "a kernel for each parameter in the optimizer's step",
        "made {n} optimizers with foreach=False", "no optimizer of torch.optim that takes foreach was made",
        "torch.optim.AdamW(model.parameters(), foreach=False)", {}),
    Row("optimizer", "in_backward", word("in_backward"), "in_backward", "changes_optimizer:in_backward", (), 1.05,
        "an update for each weight; no clipping, no accumulation of gradients, no GradScaler",
        "updated weights {n} times in backward passes{step}", "no optimizer had weights that got a gradient",
        "def update(p):  # one optimizer for each weight\n    optimizers[p].step()\n    optimizers[p].zero_grad()\n"
        "for p in model.parameters():\n    p.register_post_accumulate_grad_hook(update)", {}),
    Row("batch", "1/N[@ROWS]", parts_of_rows, "1/2", "changes_batch:batch_in_parts", ("smaller_batch",), 1.1, "N times as many passes, each of fewer rows",
        "{n} loaders or batches had {part} of their rows, and the optimizer makes its step for as many rows as before",
        "no DataLoader gave batches of enough rows",
        "for i, batch in enumerate(loader):  # batch_size divided by N\n    (loss_of(batch) / N).backward()\n"
        "    if (i + 1) % N == 0:\n        optimizer.step()\n        optimizer.zero_grad()",
        {"transformers": "per_device_train_batch_size=..., gradient_accumulation_steps=N", "Lightning": "Trainer(accumulate_grad_batches=N)",
         "accelerate": "Accelerator(gradient_accumulation_steps=N)", "DeepSpeed": '"train_micro_batch_size_per_gpu": ..., "gradient_accumulation_steps": N'}),
    Row("loss", "chunks", word("chunks"), "chunks", "changes_loss:loss_in_pieces", ("loss_in_pieces",), 1.1, "logits are computed twice",
        "computed {n} losses in eighths of their positions{step}", "no wide last layer's result went to cross_entropy, or was gathered behind log_softmax",
        "def part(h, y):\n    return F.cross_entropy(head(h), y, reduction=\"sum\")\n"
        "loss = sum(checkpoint(part, h, y, use_reentrant=False) for h, y in zip(hidden.chunk(8), labels.chunk(8))) / len(labels)",
        {"transformers": "use_liger_kernel=True", "TRL": 'SFTConfig(loss_type="chunked_nll")'}),
    Row("checkpoint", "CLASS[/K]", class_every, "", "changes_saved:checkpoint_class", ("checkpoint",), 1.3, "the forward pass of these modules runs twice",
        "checkpointed {n} calls of {class}{step}", "no module of class {class} was called in a forward pass with a graph",
        "from torch.utils.checkpoint import checkpoint\n"
        "x = checkpoint(block, x, use_reentrant=False)  # in place of block(x), for each {class}",
        {"transformers": 'activation_checkpointing=True, activation_checkpointing_kwargs={"every_n_layers": K}'}),
    Row("memory_budget", "SHARE", number(0, 1), "0.5", "changes_options:memory_budget", (), 1.2, "a compiled model computes parts of its forward pass twice",
        "compiled {n} models with that budget", "the program called torch.compile for nothing",
        "torch._functorch.config.activation_memory_budget = {value}  # before torch.compile", {}),
    Row("idle_weights", "cpu", word("cpu"), "cpu", "changes_weights:idle_on_host", ("idle_weights",), 1.3, "weights are copied to the host and back",
        "moved modules to the host {n} times{step}", "no module on the device has weights none of which is trained",
        "teacher.to(\"cpu\")  # after its pass, at the latest before loss.backward()\nteacher.to(\"cuda\")  # before its next pass", {}, "exact"),
    Row("state_on_cpu", "", nothing, "", "changes_optimizer:step_on_host", ("offload_state", "state_elsewhere"), 1.5,
        "the optimizer's step runs on the host, and gradients and weights are copied",
        "made {n} steps of optimizers on the host", "no optimizer made a step",
        "for p in model.parameters():  # before optimizer.step(), and back behind it\n    p.data, p.grad = p.data.cpu(), p.grad.cpu()",
        {"DeepSpeed": '"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}'}),
    Row("save_on_cpu", "", nothing, "", "changes_saved:save_on_cpu", ("offload_activations",), 2.0, "saved tensors are copied to the host and back in every step",
        "kept {n} saved tensors on the host{step}", "no tensor was saved for backward",
        "with torch.autograd.graph.save_on_cpu(pin_memory=True):\n    loss = model(x)  # the forward pass and the loss",
        {"TRL": "SFTConfig(activation_offloading=True)"}, "exact"),
    # ---- to be written in the program ----
    Row("gathered", "FILE:LINE", place, "", "", ("gathered", "results_on_host"), 1.0, "a copy to the host of each", "", "",
        "outputs.append(model(x).cpu())  # in the loop of the evaluation", {"transformers": "eval_accumulation_steps=1"}),
    Row("paged_state", "", nothing, "", "", (), 1.05, "the optimizer's state has 8 bits, and goes to the host where memory runs short", "", "",
        "bitsandbytes.optim.PagedAdamW8bit(model.parameters())", {"transformers": 'optim="paged_adamw_8bit"'}),
    Row("checkpoint_offload", "CLASS", class_every, "", "", (), 1.4, "as of checkpoint, and its inputs are copied to the host and back", "", "",
        "with torch.autograd.graph.save_on_cpu(pin_memory=True):\n    x = checkpoint(block, x, use_reentrant=False)",
        {"transformers": 'activation_checkpointing=True, activation_checkpointing_kwargs={"offload": True}'}),
)


def parse(text: str) -> Change:
    """Parses NAME or NAME=VALUE; raises WrongChange."""
    name, equals, value = text.partition("=")
    row = next((row for row in ROWS if row.name == name), None)
    if row is None:
        near = difflib.get_close_matches(name, [r.name for r in ROWS], 1)
        raise WrongChange(f"--with {text}: there is no change {name}; " + (f"the nearest is {near[0]}" if near else f"there are {', '.join(r.name for r in ROWS)}"))
    if not row.make:
        raise WrongChange(f"--with {text}: {name} cannot be made from outside; write it in the program: {' '.join(row.how.split())}")
    given = value if equals else row.default or None
    try:
        return Change(name if given is None else f"{name}={given}", row, row.read(given))
    except ValueError as error:
        raise WrongChange(f"--with {text}: {name} {error}") from None
