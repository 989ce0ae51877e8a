# SPDX-License-Identifier: Apache-2.0
# needs: accelerate transformers
"""A model that is larger than the memory it may have: some layers stay on the host and come when they are called."""
import torch
from accelerate import dispatch_model, infer_auto_device_map
from transformers import LlamaConfig, LlamaForCausalLM

model = LlamaForCausalLM(LlamaConfig(vocab_size=8000, hidden_size=768, intermediate_size=2048, num_hidden_layers=8,
                                     num_attention_heads=12, num_key_value_heads=12)).to(torch.bfloat16).eval()
places = infer_auto_device_map(model, max_memory={0: "80MB", "cpu": "4GB"}, no_split_module_classes=["LlamaDecoderLayer"])
print(sorted(set(map(str, places.values()))))
model = dispatch_model(model, device_map=places)
ids = torch.randint(0, 8000, (4, 128)).cuda()
with torch.no_grad():
    for _ in range(3):
        print(model(input_ids=ids, use_cache=False).logits.shape)
print(model.generate(ids, max_new_tokens=6, min_new_tokens=6, do_sample=False).shape)
