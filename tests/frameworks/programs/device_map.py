# SPDX-License-Identifier: Apache-2.0
# needs: transformers accelerate peft
"""Frozen weights that the library loads to the device itself, adapters on them, then text from them."""
import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

LlamaForCausalLM(LlamaConfig(vocab_size=8000, hidden_size=768, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=12,
                             num_key_value_heads=4)).to(torch.bfloat16).save_pretrained("base")
model = LlamaForCausalLM.from_pretrained("base", device_map="cuda", dtype=torch.bfloat16)
model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for _ in range(4):
    ids = torch.randint(0, 8000, (4, 256)).to("cuda")
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.eval()
print(model.generate(input_ids=ids[:, :64], max_new_tokens=8, min_new_tokens=8, do_sample=False).shape)
