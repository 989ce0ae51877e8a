# SPDX-License-Identifier: Apache-2.0
# A long prompt and a few tokens: the logits of the prompt are what the first pass makes.
import torch
from transformers import LlamaConfig, LlamaForCausalLM
torch.manual_seed(0)
cfg = LlamaConfig(vocab_size=64000, hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=8,
                  max_position_embeddings=4096)
model = LlamaForCausalLM(cfg).to(torch.bfloat16).cuda().eval()
ids = torch.randint(5, 64000, (4, 2048), device="cuda")
with torch.no_grad():
    model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=4, min_new_tokens=4, do_sample=False, pad_token_id=0)
print("PEAK", torch.cuda.max_memory_allocated())
