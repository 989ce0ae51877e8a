# SPDX-License-Identifier: Apache-2.0
"""A recognizer of a dialect: filter banks of recordings go through a transformer, which is trained with CTC."""
import random
import sys

import torch
import torch.nn.functional as F
from torch import nn

CHARACTERS, MELS, DIM = 64, 80, 256


class EncoderLayer(nn.Module):
    def __init__(self, heads=4):
        super().__init__()
        self.heads = heads
        self.attn_norm, self.ffn_norm = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.ffn = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4 * DIM, DIM))

    def forward(self, x, mask):
        q, k, v = self.qkv(self.attn_norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2))
        return x + self.ffn(self.ffn_norm(x))


class Recognizer(nn.Module):
    def __init__(self, layers=8):
        super().__init__()
        self.subsample = nn.Sequential(nn.Conv2d(1, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 2, 1), nn.ReLU())
        self.embed = nn.Linear(64 * MELS // 4, DIM)
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(layers))
        self.ctc = nn.Linear(DIM, CHARACTERS)

    def forward(self, features, lengths):
        x = self.embed(self.subsample(features[:, None]).transpose(1, 2).flatten(2))
        positions = torch.arange(x.shape[1], device=x.device)
        mask = (positions < lengths[:, None])[:, None, None]
        for layer in self.layers:
            x = layer(x, mask)
        return self.ctc(x).log_softmax(-1)


def read_manifest(utterances=120):
    rng = random.Random(7)
    frames = [rng.randint(300, 1400) for _ in range(utterances)]
    frames[77] = 9200
    return [{"frames": n, "text": [rng.randrange(1, CHARACTERS) for _ in range(n // 20)]} for n in frames]


def collate(batch):
    features = torch.zeros(len(batch), max(u["frames"] for u in batch), MELS)
    targets = torch.zeros(len(batch), max(len(u["text"]) for u in batch), dtype=torch.long)
    for row, utterance in enumerate(batch):
        features[row, :utterance["frames"]] = torch.rand(utterance["frames"], MELS)
        targets[row, :len(utterance["text"])] = torch.tensor(utterance["text"])
    return features.cuda(), targets.cuda(), [u["frames"] // 4 for u in batch], [len(u["text"]) for u in batch]


manifest = read_manifest()
if sys.argv[1] == "fixed":
    manifest = [u for u in manifest if u["frames"] <= 3000 and len(u["text"]) <= 400]
model = Recognizer().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
batches = [manifest[i:i + 12] for i in range(0, len(manifest), 12)]
for step, batch in enumerate(batches):
    features, targets, frames, letters = collate(batch)
    log_probs = model(features, torch.tensor(frames, device="cuda")).transpose(0, 1)
    loss = F.ctc_loss(log_probs, targets, frames, letters, zero_infinity=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, tuple(features.shape), torch.cuda.max_memory_allocated() >> 20, "MiB")
