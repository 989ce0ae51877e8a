# SPDX-License-Identifier: Apache-2.0
"""Text generation into a cache of fixed size, made before the first token and written in place."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

import runner
import truth

config = LlamaConfig(vocab_size=8000, hidden_size=768, intermediate_size=2000, num_hidden_layers=8, num_attention_heads=12,
                     num_key_value_heads=4, max_position_embeddings=2048)
with torch.device("cuda"):
    model = LlamaForCausalLM(config).half().eval()
runner.declare(model)
cache = StaticCache(config=config, max_cache_len=1500)
truth.holds("kv_cache", "static cache", lambda: [[getattr(c, "keys", None), getattr(c, "values", None)] for c in cache.layers])
prompts = runner.Batches(lambda: torch.randint(0, 8000, (8, 300), device="cuda"))

with torch.inference_mode():
    for _ in range(2):
        x = prompts.next()
        for i in range(4):
            with truth.phase("forward"):
                out = model(input_ids=x if i == 0 else out.logits[:, -1:].argmax(-1), past_key_values=cache, use_cache=True)
            truth.mark("token")
        cache.reset()
truth.finish()
