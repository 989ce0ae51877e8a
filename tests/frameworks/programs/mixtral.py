# SPDX-License-Identifier: Apache-2.0
# needs: transformers
"""A mixture of experts, each called by itself and all in grouped products."""
import torch
from transformers import MixtralConfig, MixtralForCausalLM

for how in ("eager", "grouped_mm"):
    config = MixtralConfig(vocab_size=4000, hidden_size=512, intermediate_size=1024, num_hidden_layers=3, num_attention_heads=8,
                           num_key_value_heads=4, num_local_experts=4, num_experts_per_tok=2)
    model = MixtralForCausalLM(config).to("cuda", torch.bfloat16)
    model.set_experts_implementation(how)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(3):
        ids = torch.randint(0, 4000, (4, 256), device="cuda")
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(how, torch.cuda.max_memory_allocated() >> 20)
    del model, optimizer, loss
