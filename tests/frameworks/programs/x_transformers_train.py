# SPDX-License-Identifier: Apache-2.0
# needs: x_transformers
"""x-transformers: autoregressive training with accumulation, then generation."""
import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

torch.manual_seed(0)
decoder = Decoder(dim=512, depth=6, heads=8, rotary_pos_emb=True)
model = AutoregressiveWrapper(TransformerWrapper(num_tokens=256, max_seq_len=512, attn_layers=decoder)).cuda()
optim = torch.optim.Adam(model.parameters(), lr=1e-4)
for i in range(6):
    model.train()
    for _ in range(4):
        loss = model(torch.randint(0, 256, (2, 513)).cuda())
        (loss / 4).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optim.step()
    optim.zero_grad()
    if i % 3 == 2:
        model.eval()
        with torch.no_grad():
            print(model(torch.randint(0, 256, (2, 513)).cuda()).item())
model.eval()
print(model.generate(torch.randint(0, 256, (1, 64)).cuda(), 24, cache_kv=True).shape)
