# SPDX-License-Identifier: Apache-2.0
"""Reviews of a shop are sorted into topics by an encoder that is finetuned."""
import random
import sys

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, DIM, HEADS, LAYERS, MAX_LENGTH, TOPICS = 30522, 512, 8, 6, 512, 12


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)
        self.norm1, self.norm2, self.dropout = nn.LayerNorm(DIM), nn.LayerNorm(DIM), nn.Dropout(0.1)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
        x = self.norm1(x + self.dropout(self.out(h)))
        return self.norm2(x + self.dropout(self.down(F.gelu(self.up(x)))))


class TopicModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(VOCAB, DIM), nn.Embedding(MAX_LENGTH, DIM)
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(LAYERS))
        self.classifier = nn.Linear(DIM, TOPICS)

    def forward(self, input_ids, attention_mask):
        x = self.words(input_ids) + self.positions(torch.arange(input_ids.shape[1], device="cuda"))
        mask = attention_mask[:, None, None].bool()
        for layer in self.layers:
            x = layer(x, mask)
        return self.classifier(x[:, 0])


class Tokenizer:
    pad_token_id = 0

    def pad(self, encoded, length):
        ids = torch.tensor([e["input_ids"] + [self.pad_token_id] * (length - len(e["input_ids"])) for e in encoded])
        return {"input_ids": ids, "attention_mask": (ids != self.pad_token_id).long(), "labels": torch.tensor([e["label"] for e in encoded])}


def load_reviews(count=192):
    rng = random.Random(3)
    return [{"input_ids": [rng.randrange(1, VOCAB) for _ in range(rng.randint(20, 130))], "label": rng.randrange(TOPICS)} for _ in range(count)]


def collate(reviews):
    longest = max(len(r["input_ids"]) for r in reviews)
    return tokenizer.pad(reviews, longest if sys.argv[1] == "fixed" else MAX_LENGTH)


tokenizer = Tokenizer()
loader = torch.utils.data.DataLoader(load_reviews(), batch_size=32, shuffle=True, collate_fn=collate)
model = TopicModel().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
for step, batch in enumerate(loader):
    batch = {name: value.cuda() for name, value in batch.items()}
    loss = F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, tuple(batch["input_ids"].shape), torch.cuda.max_memory_allocated() >> 20, "MiB")
