# SPDX-License-Identifier: Apache-2.0
"""Adapters on a frozen base: the base's weights are saved for backward, but they are parameters."""
import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

import runner

base = GPT2LMHeadModel(GPT2Config(vocab_size=12000, n_positions=256, n_embd=512, n_layer=4, n_head=8, use_cache=False)).to("cuda")
model = get_peft_model(base, LoraConfig(r=8, target_modules=["c_attn"], task_type="CAUSAL_LM", fan_in_fan_out=True)).to("cuda")
optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
runner.declare(model, optimizer)
runner.train(model, optimizer, lambda: torch.randint(0, 12000, (4, 256), device="cuda"),
             lambda m, x: m(input_ids=x, labels=x).loss, inside=base.transformer.h[2].mlp)
