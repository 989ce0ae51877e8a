# SPDX-License-Identifier: Apache-2.0
# needs: torchao transformers
"""Training whose matrix products are of eight-bit floating point."""
import torch
from torchao.float8 import convert_to_float8_training
from transformers import LlamaConfig, LlamaForCausalLM

model = LlamaForCausalLM(LlamaConfig(vocab_size=8000, hidden_size=512, intermediate_size=1536, num_hidden_layers=3, num_attention_heads=8,
                                     num_key_value_heads=8)).to("cuda", torch.bfloat16)
convert_to_float8_training(model, module_filter_fn=lambda module, name: name != "lm_head")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    ids = torch.randint(0, 8000, (4, 256), device="cuda")
    model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
