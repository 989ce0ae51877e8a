# SPDX-License-Identifier: Apache-2.0
# needs: transformers
# seconds: 580
# warm: yes
"""A compiled decoder: training, then text from it."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(vocab_size=6000, n_positions=256, n_embd=512, n_layer=2, n_head=8)).cuda()
fast = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(4):
    ids = torch.randint(0, 6000, (8, 256), device="cuda")
    loss = fast(input_ids=ids, labels=ids, use_cache=False).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
with torch.no_grad():
    print(fast(input_ids=ids, use_cache=False).logits.shape)
