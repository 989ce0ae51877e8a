# SPDX-License-Identifier: Apache-2.0
"""Embeddings of a corpus with a sentence encoder, for a search index on the host."""
import sys

import numpy as np
import torch
from torch import nn
from transformers import BertConfig, BertModel

TO_HOST = sys.argv[1] == "fixed"


class SentenceEncoder(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.bert = BertModel(BertConfig(hidden_size=width, num_hidden_layers=2, num_attention_heads=16,
                                         intermediate_size=2048, vocab_size=8000, max_position_embeddings=64))

    def forward(self, ids, mask):
        h = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        return (h * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)

    def encode(self, sentences, batch_size=1024, convert_to_numpy=True):
        self.eval()
        all_embeddings = []
        order = np.argsort([-len(s) for s in sentences], kind="stable")
        for start in range(0, len(sentences), batch_size):
            batch = [sentences[i] for i in order[start:start + batch_size]]
            ids = torch.tensor(batch).cuda()
            with torch.no_grad():
                embeddings = self(ids, torch.ones_like(ids)).detach()
                if convert_to_numpy and TO_HOST:
                    embeddings = embeddings.cpu()
                all_embeddings.extend(embeddings)
        all_embeddings = [all_embeddings[i] for i in np.argsort(order)]
        if convert_to_numpy:
            all_embeddings = np.stack([e.cpu().numpy() for e in all_embeddings])
        return all_embeddings


rng = np.random.default_rng(0)
corpus = rng.integers(0, 8000, (64 * 1024, 12)).tolist()
model = SentenceEncoder().cuda()
index = model.encode(corpus)
print(index.shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
