# SPDX-License-Identifier: Apache-2.0
# needs: transformers
"""BERT, T5, ViT and Whisper, one after the other: a few steps each, then an evaluation without gradients."""
import torch
from transformers import (BertConfig, BertForMaskedLM, T5Config, T5ForConditionalGeneration, ViTConfig, ViTForImageClassification,
                          WhisperConfig, WhisperForConditionalGeneration)


def ids(n, length, most=6000):
    return torch.randint(2, most, (n, length)).cuda()


def bert():
    config = BertConfig(vocab_size=6000, hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=2048)
    return BertForMaskedLM(config), lambda: {"input_ids": ids(8, 128), "labels": ids(8, 128)}


def t5():
    config = T5Config(vocab_size=6000, d_model=512, d_kv=64, d_ff=1024, num_layers=3, num_heads=8, decoder_start_token_id=0)
    return T5ForConditionalGeneration(config), lambda: {"input_ids": ids(8, 96), "labels": ids(8, 64)}


def vit():
    config = ViTConfig(hidden_size=384, num_hidden_layers=4, num_attention_heads=6, intermediate_size=1536, num_labels=10)
    return ViTForImageClassification(config), lambda: {"pixel_values": torch.randn(8, 3, 224, 224).cuda(), "labels": ids(8, 1, 10)[:, 0]}


def whisper():
    config = WhisperConfig(vocab_size=6000, d_model=384, encoder_layers=2, decoder_layers=2, encoder_attention_heads=6,
                           decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536, max_source_positions=500,
                           pad_token_id=0, bos_token_id=1, eos_token_id=1, decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None)
    return WhisperForConditionalGeneration(config), lambda: {"input_features": torch.randn(4, 80, 1000).cuda(), "labels": ids(4, 64)}


for make in (bert, t5, vit, whisper):
    model, batch = make()
    model = model.cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(3):
        optimizer.zero_grad()
        model(**batch()).loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for _ in range(2):
            print(make.__name__, model(**batch()).logits.shape)
    del model, optimizer
