# SPDX-License-Identifier: Apache-2.0
"""A chat model with a long context answers questions, token by token, with a cache of keys and values."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WORDS, WIDTH, HEADS, KV_HEADS, LAYERS, MAX_SEQ_LEN = 32000, 1024, 16, 8, 10, 65536


class KVCache(nn.Module):
    def __init__(self, batch_size, max_seq_len, dtype):
        super().__init__()
        shape = (batch_size, KV_HEADS, max_seq_len, WIDTH // HEADS)
        self.register_buffer("k_cache", torch.zeros(shape, dtype=dtype), persistent=False)
        self.register_buffer("v_cache", torch.zeros(shape, dtype=dtype), persistent=False)

    def update(self, position, k, v):
        self.k_cache[:, :, position] = k
        self.v_cache[:, :, position] = v
        return self.k_cache, self.v_cache


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        head = WIDTH // HEADS
        self.norm1, self.norm2, self.cache = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH), None
        self.q, self.kv, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * KV_HEADS * head), nn.Linear(WIDTH, WIDTH)
        self.gate, self.up, self.down = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(3 * WIDTH, WIDTH)

    def forward(self, x, position, mask):
        h = self.norm1(x)
        q = self.q(h).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        k, v = self.cache.update(position, *self.kv(h).unflatten(-1, (2, KV_HEADS, -1)).permute(2, 0, 3, 1, 4))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True).transpose(1, 2).flatten(2))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def setup_caches(self, batch_size, dtype, decoder_max_seq_len=MAX_SEQ_LEN):
        self.cache_len = decoder_max_seq_len
        for layer in self.layers:
            layer.cache = KVCache(batch_size, decoder_max_seq_len, dtype)

    def forward(self, tokens, position):
        mask = torch.arange(self.cache_len, device=tokens.device) <= position[:, None]
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, position, mask)
        return self.head(x[:, -1])


@torch.inference_mode()
def generate(model, prompt, max_new_tokens):
    with torch.device("cuda"):
        if sys.argv[1] == "fixed":
            model.setup_caches(len(prompt), torch.bfloat16, decoder_max_seq_len=prompt.shape[1] + max_new_tokens)
        else:
            model.setup_caches(len(prompt), torch.bfloat16)
    tokens, position, answer = prompt, torch.arange(prompt.shape[1], device="cuda"), []
    for _ in range(max_new_tokens):
        logits = model(tokens, position)
        tokens = torch.multinomial((logits.float() / 0.8).softmax(-1), 1)
        position = position[-1:] + 1
        answer.append(tokens)
    return torch.cat(answer, 1)


torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = Decoder().eval()
for question in range(2):
    prompt = torch.randint(0, WORDS, (1, 180 + 60 * question), device="cuda")
    answer = generate(model, prompt, max_new_tokens=40)
    print(question, tuple(answer.shape), torch.cuda.max_memory_allocated() >> 20, "MiB")
