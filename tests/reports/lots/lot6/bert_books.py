# SPDX-License-Identifier: Apache-2.0
"""A masked language model is pretrained on books: 15 % of the words are hidden and have to be found."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WORDS, WIDTH, LENGTH, BATCH, IGNORE = 30_000, 512, 128, 32, -100


class MaskedLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.position = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.transform, self.norm = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)
        self.decoder = nn.Linear(WIDTH, WORDS)

    def forward(self, ids, labels, positions):
        x = self.encoder(self.embed(ids) + self.position.weight)
        if sys.argv[1] == "fixed":
            x, labels = x.flatten(0, 1)[positions], labels.flatten()[positions]
        logits = self.decoder(self.norm(F.gelu(self.transform(x))))
        return F.cross_entropy(logits.view(-1, WORDS), labels.view(-1), ignore_index=IGNORE)


def batch():
    ids = torch.randint(5, WORDS, (BATCH, LENGTH))
    masked = torch.rand(BATCH, LENGTH) < 0.15
    labels = ids.masked_fill(~masked, IGNORE)
    return ids.masked_fill(masked, 4).cuda(), labels.cuda(), masked.flatten().nonzero().squeeze(1).cuda()


model = MaskedLM().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(4):
    loss = model(*batch())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
