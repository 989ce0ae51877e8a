# SPDX-License-Identifier: Apache-2.0
import torch
from transformers import LlamaConfig, LlamaForCausalLM
torch.manual_seed(0)
cfg = LlamaConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=4,
                  num_attention_heads=16, num_key_value_heads=4, max_position_embeddings=4096, use_cache=False)
model = LlamaForCausalLM(cfg).to(torch.bfloat16).to("cuda").train()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    ids = torch.randint(5, 32000, (4, 1024), device="cuda")
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated(), "END", torch.cuda.memory_allocated())
