# SPDX-License-Identifier: Apache-2.0
"""A language model is trained on masked words, and its accuracy is followed with a metric object."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WORDS, WIDTH, LENGTH = 30522, 512, 128


class MaskedLM(nn.Module):
    def __init__(self, layers=4):
        super().__init__()
        self.embed, self.position = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True, norm_first=True)
        self.encode = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.decode = nn.Linear(WIDTH, WORDS)

    def forward(self, ids):
        h = self.embed(ids) + self.position.weight[:ids.shape[1]]
        return self.decode(self.encode(h))


class Accuracy:
    def __init__(self, num_classes, average="micro"):
        self.num_classes, self.average = num_classes, average
        self.tp = self.fp = self.fn = 0

    def update(self, preds, target):
        if sys.argv[1] == "fixed" and self.average == "micro":
            tp = (preds == target).sum()
            fp = fn = (preds != target).sum()
        else:
            pairs = target * self.num_classes + preds
            confusion = torch.zeros(self.num_classes ** 2, dtype=torch.long, device=preds.device)
            confusion.index_add_(0, pairs, torch.ones_like(pairs))
            confusion = confusion.reshape(self.num_classes, self.num_classes)
            tp = confusion.diag()
            fp, fn = confusion.sum(0) - tp, confusion.sum(1) - tp
            if self.average == "micro":
                tp, fp, fn = tp.sum(), fp.sum(), fn.sum()
        self.tp, self.fp, self.fn = self.tp + tp, self.fp + fp, self.fn + fn

    def compute(self):
        return self.tp / (self.tp + self.fn)


model = MaskedLM().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
accuracy = Accuracy(num_classes=WORDS)
for step in range(4):
    ids = torch.randint(0, WORDS, (16, LENGTH), device="cuda")
    labels = torch.randint(0, WORDS, (16, LENGTH), device="cuda")
    logits = model(ids)
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    accuracy.update(logits.argmax(-1).flatten(), labels.flatten())
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
print("accuracy", float(accuracy.compute()))
