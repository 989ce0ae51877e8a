# SPDX-License-Identifier: Apache-2.0
import os, torch
from transformers import LlamaConfig, LlamaForCausalLM
torch.manual_seed(0)
cfg = LlamaConfig(vocab_size=8000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=4,
                  num_attention_heads=16, num_key_value_heads=16, max_position_embeddings=16384, use_cache=False)
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = LlamaForCausalLM(cfg)
model = model.to("cuda")
torch.set_default_dtype(torch.float32)
model.train()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    ids = torch.randint(0, 8000, (4, 512), device="cuda")
    out = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids)
    out.loss.backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated(), "END", torch.cuda.memory_allocated())
