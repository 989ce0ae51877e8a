# SPDX-License-Identifier: Apache-2.0
# needs: bitsandbytes transformers
"""An optimizer with states of eight bits."""
import bitsandbytes
import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(vocab_size=8000, n_positions=256, n_embd=512, n_layer=4, n_head=8)).cuda()
optimizer = bitsandbytes.optim.AdamW8bit(model.parameters(), lr=1e-4)
for _ in range(4):
    ids = torch.randint(0, 8000, (4, 256), device="cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
