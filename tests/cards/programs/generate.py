# SPDX-License-Identifier: Apache-2.0
"""generate.py SIZE TOKENS: Qwen3 in bf16 continues TOKENS tokens by 2,048, as its speed benchmark does with transformers. Weights are not
set. The benchmark had the package flash-attn, which needs a compiler for CUDA; PyTorch has the same kernel."""
import sys

import torch

sys.modules["torchao"] = None  # older in this environment than transformers asks for

from transformers import AttentionInterface, AutoModelForCausalLM, GenerationConfig, Qwen3Config  # noqa: E402

NEW = 2048
SIZES = {"0.6B": dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, tie_word_embeddings=True),
         "1.7B": dict(hidden_size=2048, intermediate_size=6144, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, tie_word_embeddings=True),
         "4B": dict(hidden_size=2560, intermediate_size=9728, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8, tie_word_embeddings=True),
         "8B": dict(hidden_size=4096, intermediate_size=12288, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8, tie_word_embeddings=False)}


def flash(module, query, key, value, mask, scaling=None, **settings):
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    return torch.ops.aten._flash_attention_forward(q, k, v, None, None, q.shape[1], k.shape[1], 0.0, q.shape[1] > 1, False, scale=scaling)[0], None


def main(size, tokens):
    AttentionInterface.register("flash", flash)
    config = Qwen3Config(vocab_size=151936, head_dim=128, max_position_embeddings=131072, **SIZES[size])
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, torch_dtype=torch.bfloat16, attn_implementation="flash").eval()
    asked = torch.full((1, int(tokens)), 100, device="cuda")
    how = GenerationConfig(do_sample=True, temperature=0.6, top_k=20, top_p=0.95, min_new_tokens=NEW, max_new_tokens=NEW, pad_token_id=0, eos_token_id=1)
    model.generate(input_ids=asked, attention_mask=torch.ones_like(asked), generation_config=how)
    print(f"peak memory allocated: {torch.cuda.max_memory_allocated() / 2**20:.1f} MiB", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
