# SPDX-License-Identifier: Apache-2.0
# needs: transformers
"""Text with a cache that grows, with one of a fixed size, with beams, and from an encoder and a decoder."""
import torch
from transformers import (LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration)

model = LlamaForCausalLM(LlamaConfig(vocab_size=8000, hidden_size=512, intermediate_size=1376, num_hidden_layers=6, num_attention_heads=8,
                                     num_key_value_heads=8)).to("cuda", torch.bfloat16).eval()
model.generation_config.pad_token_id = 0
ids = torch.randint(3, 8000, (8, 512), device="cuda")
for more in ({}, {"cache_implementation": "static"}, {"num_beams": 3}):
    print(model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, min_new_tokens=8, do_sample=False, disable_compile=True, **more).shape)
del model
pair = T5ForConditionalGeneration(T5Config(vocab_size=8000, d_model=512, d_kv=64, d_ff=1024, num_layers=4, num_heads=8,
                                           decoder_start_token_id=0)).to("cuda").eval()
print(pair.generate(ids, max_new_tokens=8, min_new_tokens=8, do_sample=False).shape)
