# SPDX-License-Identifier: Apache-2.0
"""Text generation: no backward, no optimizer; weights, a cache that grows with every token, and the rest."""
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

import runner
import truth

config = Qwen2Config(vocab_size=8000, hidden_size=768, intermediate_size=2000, num_hidden_layers=10, num_attention_heads=8,
                     num_key_value_heads=8, max_position_embeddings=1024)
model = Qwen2ForCausalLM(config).to("cuda", torch.bfloat16).eval()
runner.declare(model)
cache = [None]
truth.holds("kv_cache", "past_key_values", lambda: [[c.keys, c.values] for c in cache[0].layers] if cache[0] else [])
prompts = runner.Batches(lambda: torch.randint(0, 8000, (16, 500), device="cuda"))

with torch.no_grad():
    for _ in range(3):
        x = prompts.next()
        with truth.phase("forward"):
            out = model(input_ids=x, use_cache=True)
            cache[0] = out.past_key_values
        truth.mark("prefill")
        for _ in range(3):
            with truth.phase("forward"):
                token = out.logits[:, -1:].argmax(-1)
                out = model(input_ids=token, past_key_values=cache[0], use_cache=True)
            truth.mark("token")
        cache[0] = None
truth.finish()
