# SPDX-License-Identifier: Apache-2.0
# Two adapters, each with a module of its own that is trained in full.
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from peft import LoraConfig, get_peft_model
torch.manual_seed(0)
cfg = LlamaConfig(vocab_size=32000, hidden_size=768, intermediate_size=2048, num_hidden_layers=4,
                  num_attention_heads=12, num_key_value_heads=12, max_position_embeddings=2048, use_cache=False)
model = LlamaForCausalLM(cfg).to(torch.bfloat16).to("cuda")
model = get_peft_model(model, LoraConfig(r=16, target_modules=["q_proj", "v_proj"], modules_to_save=["lm_head"]))
model.add_adapter("second", LoraConfig(r=16, target_modules=["q_proj", "v_proj"], modules_to_save=["embed_tokens"]))
model.set_adapter("second")
model.train()
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for step in range(3):
    ids = torch.randint(0, 32000, (1, 256), device="cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated())
