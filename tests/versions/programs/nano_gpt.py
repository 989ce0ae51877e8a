# SPDX-License-Identifier: Apache-2.0
# A training of the repository's model.
import torch
from model import GPT, GPTConfig
torch.manual_seed(0)
model = GPT(GPTConfig(block_size=512, vocab_size=8000, n_layer=4, n_head=8, n_embd=256, dropout=0.0)).cuda().train()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    ids = torch.randint(0, 8000, (8, 512), device="cuda")
    model(ids, ids)[1].backward()
    opt.step(); opt.zero_grad()
