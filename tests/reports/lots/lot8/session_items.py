# SPDX-License-Identifier: Apache-2.0
"""A transformer predicts the next product of a shopping session, for every position of it, with item embeddings as output weights."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

ITEMS, WIDTH, LAYERS, HEADS, LENGTH, BATCH, MAX_SAMPLES = 52_000, 128, 2, 4, 20, 96, 1000


class LogUniformSampler(nn.Module):
    def __init__(self, n_samples):
        super().__init__()
        self.n_samples = n_samples
        ranks = torch.arange(1, ITEMS, dtype=torch.float)
        self.register_buffer("dist", torch.cat([torch.zeros(1), (ranks + 1).log() - ranks.log()]) / torch.tensor(float(ITEMS)).log())

    def sample(self, labels):
        negatives = torch.multinomial(self.dist, self.n_samples, replacement=True)
        return negatives, self.dist[labels], self.dist[negatives]


class NextItemPredictionTask(nn.Module):
    def __init__(self, item_embedding_table):
        super().__init__()
        self.item_embedding_table, self.bias = item_embedding_table, nn.Parameter(torch.zeros(ITEMS))
        self.sampler = LogUniformSampler(MAX_SAMPLES)

    def sampled(self, x, labels):
        weight = self.item_embedding_table.weight
        negatives, label_probs, negative_probs = self.sampler.sample(labels)
        positive = (x * weight[labels]).sum(-1) + self.bias[labels] - label_probs.clamp(min=1e-9).log()
        negative = x @ weight[negatives].t() + self.bias[negatives] - negative_probs.clamp(min=1e-9).log()
        negative = negative.masked_fill(labels[:, None] == negatives, torch.finfo(x.dtype).min / 100)
        return torch.cat([positive[:, None], negative], 1), torch.zeros_like(labels)

    def forward(self, x, item_ids, training):
        labels = item_ids.flatten()
        x = x.flatten(0, 1)[labels != 0]
        labels = labels[labels != 0]
        if training and sys.argv[1] == "fixed":
            logits, labels = self.sampled(x, labels)
        else:
            logits = F.linear(x, self.item_embedding_table.weight, self.bias)
        predictions = F.log_softmax(logits, dim=-1)
        return F.nll_loss(predictions, labels), predictions, labels


class SessionModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.items, self.positions = nn.Embedding(ITEMS, WIDTH, padding_idx=0), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.1, batch_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False), NextItemPredictionTask(self.items)
        self.register_buffer("mask", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))

    def forward(self, sessions, training):
        x = self.items(sessions) + self.positions.weight
        return self.head(self.body(x, mask=self.mask)[:, :-1], sessions[:, 1:], training)


def sessions(batches, size):
    for _ in range(batches):
        items = torch.randint(1, ITEMS, (size, LENGTH))
        yield (items * (torch.arange(LENGTH) < torch.randint(3, LENGTH + 1, (size, 1)))).cuda()


torch.manual_seed(7)
model = SessionModel().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    model.train()
    for batch in sessions(10, BATCH):
        loss = model(batch, training=True)[0]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    hits = count = 0
    with torch.no_grad():
        for batch in sessions(4, BATCH // 6):
            _, predictions, labels = model(batch, training=False)
            hits += (predictions.topk(20)[1] == labels[:, None]).any(1).sum().item()
            count += len(labels)
    print(epoch, loss.item(), "recall@20", hits / count, torch.cuda.max_memory_allocated() >> 20, "MiB")
