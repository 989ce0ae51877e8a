# SPDX-License-Identifier: Apache-2.0
# A training of GPT-2.
import torch
from transformers import GPT2Config, GPT2LMHeadModel
torch.manual_seed(0)
cfg = GPT2Config(vocab_size=8000, n_embd=512, n_layer=4, n_head=8, n_positions=1024, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
model = GPT2LMHeadModel(cfg).cuda().train()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    ids = torch.randint(0, 8000, (4, 1024), device="cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated())
