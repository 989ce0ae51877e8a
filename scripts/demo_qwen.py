#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a language model of the shape of Qwen2.5-1.5B for a few steps on random tokens.

An ordinary training script: it knows nothing of gpumemtrace. Nothing is downloaded.
"""
import argparse

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM


def build_model():
    config = Qwen2Config(
        vocab_size=151936,
        hidden_size=1536,
        intermediate_size=8960,
        num_hidden_layers=28,
        num_attention_heads=12,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        use_cache=False,
    )
    with torch.device("cuda"):
        return Qwen2ForCausalLM(config)


def train(model, optimizer, args):
    for _ in range(args.steps):
        tokens = torch.randint(0, 151936, (args.batch, args.length), device="cuda")
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters())
    train(model, optimizer, args)
    count = sum(p.numel() for p in model.parameters())
    print(f"{args.steps} steps, {count / 1e9:.2f} billion parameters;"
          f" PyTorch says: peak {torch.cuda.max_memory_allocated()} bytes")


if __name__ == "__main__":
    main()
