# SPDX-License-Identifier: Apache-2.0
"""Training a retriever that compares the tokens of queries with those of documents."""
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import BertConfig, BertModel

BUDGET = 4_000_000 if sys.argv[1] == "fixed" else 100_000_000


def part_scores(queries, documents, mask):
    scores = torch.einsum("qsh,dth->qdst", queries, documents)
    return scores.masked_fill(~mask[None, :, None], -1e4).amax(-1).sum(-1)


def maxsim(queries, documents, mask, chunk_elements):
    q, s, _ = queries.shape
    size = max(1, chunk_elements // (q * s * documents.shape[1]))
    if size >= len(documents):
        return part_scores(queries, documents, mask)
    return torch.cat([checkpoint(part_scores, queries, documents[i:i + size], mask[i:i + size], use_reentrant=False)
                      for i in range(0, len(documents), size)], dim=1)


class Retriever(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = BertModel(BertConfig(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512,
                                         vocab_size=8000))
        self.project = nn.Linear(256, 128)

    def forward(self, ids):
        return F.normalize(self.project(self.bert(input_ids=ids).last_hidden_state), dim=-1)


model = Retriever().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for step in range(3):
    queries = torch.randint(0, 8000, (64, 32), device="cuda")
    documents = torch.randint(0, 8000, (192, 128), device="cuda")
    mask = torch.ones(192, 128, dtype=torch.bool, device="cuda")
    scores = maxsim(model(queries), model(documents), mask, BUDGET)
    loss = F.cross_entropy(scores / 0.05, torch.arange(64, device="cuda") * 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, scores.shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
