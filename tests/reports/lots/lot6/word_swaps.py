# SPDX-License-Identifier: Apache-2.0
"""A sentiment classifier is attacked: words of a review are replaced by synonyms until the label changes."""
import random
import sys

import torch
from torch import nn

WORDS, WIDTH, LAYERS, LENGTH, SYNONYMS = 20_000, 384, 6, 96, 40


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.position = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 6, 4 * WIDTH, batch_first=True, activation="gelu")
        self.encoder, self.head = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False), nn.Linear(WIDTH, 2)

    def forward(self, ids):
        x = self.embed(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.encoder(x)[:, 0])


class GreedyAttack:
    def __init__(self, model, batch_size=None):
        self.model, self.batch_size, self.queries = model, batch_size, 0

    @torch.no_grad()
    def call_model(self, texts):
        self.queries += len(texts)
        ids = torch.tensor(texts).cuda()
        if self.batch_size is None:
            return self.model(ids).softmax(-1).cpu()
        return torch.cat([self.model(part).softmax(-1).cpu() for part in ids.split(self.batch_size)])

    def transformations(self, text, position):
        return [text[:position] + [random.randrange(WORDS)] + text[position + 1:] for _ in range(SYNONYMS)]

    def attack(self, text, label):
        importance = [self.call_model([text[:i] + [0] + text[i + 1:]])[0, label].item() for i in range(0, LENGTH, 8)]
        order = sorted(range(len(importance)), key=importance.__getitem__)
        for position in order[:2]:
            scores = self.call_model(self.transformations(text, 8 * position))
            text = self.transformations(text, 8 * position)[int(scores[:, label].argmin()) % SYNONYMS]
        candidates = [t for i in range(0, LENGTH, 2) for t in self.transformations(text, i)]
        scores = self.call_model(candidates)
        return candidates[int(scores[:, label].argmin()) % len(candidates)]


model = Classifier().cuda().eval()
attack = GreedyAttack(model, batch_size=32 if sys.argv[1] == "fixed" else None)
for review in range(3):
    text = [random.randrange(WORDS) for _ in range(LENGTH)]
    changed = attack.attack(text, label=1)
    print("review", review, sum(a != b for a, b in zip(text, changed)), "words changed", torch.cuda.max_memory_allocated() >> 20, "MiB")
