# SPDX-License-Identifier: Apache-2.0
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from peft import LoraConfig, get_peft_model
torch.manual_seed(0)
cfg = LlamaConfig(vocab_size=8000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=6,
                  num_attention_heads=16, num_key_value_heads=16, max_position_embeddings=2048, use_cache=False)
model = LlamaForCausalLM(cfg).to(torch.bfloat16).to("cuda")
model = get_peft_model(model, LoraConfig(r=64, lora_alpha=16, lora_dropout=0.0, task_type="CAUSAL_LM",
    target_modules=["q_proj","k_proj","v_proj","o_proj","gate_proj","up_proj","down_proj"])).to("cuda")
model.train()
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for step in range(3):
    ids = torch.randint(0, 8000, (4, 512), device="cuda")
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated(), "END", torch.cuda.memory_allocated())
