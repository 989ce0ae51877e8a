# SPDX-License-Identifier: Apache-2.0
# needs: liger_kernel transformers
"""A decoder whose norms, rotations and loss are Liger's kernels."""
import torch
from liger_kernel.transformers import apply_liger_kernel_to_llama
from transformers import LlamaConfig, LlamaForCausalLM

apply_liger_kernel_to_llama()
model = LlamaForCausalLM(LlamaConfig(vocab_size=8000, hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
                                     num_key_value_heads=8)).to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(4):
    ids = torch.randint(0, 8000, (4, 256), device="cuda")
    model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
