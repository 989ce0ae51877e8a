# SPDX-License-Identifier: Apache-2.0
# needs: torchao transformers
"""Weights made small for inference by quantize_, to eight bits."""
import torch
from torchao.quantization import Int8WeightOnlyConfig, quantize_
from transformers import LlamaConfig, LlamaForCausalLM

model = LlamaForCausalLM(LlamaConfig(vocab_size=8000, hidden_size=768, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=12,
                                     num_key_value_heads=4)).to("cuda", torch.bfloat16).eval()
quantize_(model, Int8WeightOnlyConfig())
ids = torch.randint(0, 8000, (4, 256), device="cuda")
with torch.no_grad():
    for _ in range(4):
        print(model(input_ids=ids, use_cache=False).logits.shape)
