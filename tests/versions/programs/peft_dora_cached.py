# SPDX-License-Identifier: Apache-2.0
# Inference with DoRA adapters, which keeps what it computes of the weights if that version can.
import contextlib
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from peft import LoraConfig, get_peft_model, helpers
torch.manual_seed(0)
cfg = LlamaConfig(vocab_size=8000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=6,
                  num_attention_heads=16, num_key_value_heads=16, max_position_embeddings=2048, use_cache=False)
model = LlamaForCausalLM(cfg).to(torch.bfloat16).to("cuda")
model = get_peft_model(model, LoraConfig(r=16, use_dora=True, task_type="CAUSAL_LM",
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]))
model.eval()
with torch.no_grad(), getattr(helpers, "DoraCaching", contextlib.nullcontext)():
    for step in range(4):
        model(input_ids=torch.randint(0, 8000, (1, 512), device="cuda"))
print("PEAK", torch.cuda.max_memory_allocated())
