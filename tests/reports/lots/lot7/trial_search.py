# SPDX-License-Identifier: Apache-2.0
"""Learning rate and weight decay of a classifier of reviews are searched for; each trial trains a new model."""
import gc
import random
import sys

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH, LAYERS = 20000, 384, 6


class ReviewClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.Embedding(VOCAB, WIDTH)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, 6, 4 * WIDTH, batch_first=True), LAYERS, enable_nested_tensor=False)
        self.classifier = nn.Linear(WIDTH, 5)

    def forward(self, input_ids, labels):
        return F.cross_entropy(self.classifier(self.encoder(self.embeddings(input_ids)).mean(1)), labels)


class Accelerator:
    def __init__(self):
        self._models, self._optimizers = [], []

    def prepare(self, model, optimizer):
        self._models.append(model)
        self._optimizers.append(optimizer)
        return model, optimizer

    def clear(self):
        self._models, self._optimizers = [], []


class Trainer:
    def __init__(self, model_init):
        self.model_init, self.accelerator = model_init, Accelerator()
        self.model = self.optimizer = None

    def train(self, params, steps=6):
        self.model = self.model_init().cuda()
        optimizer = torch.optim.AdamW(self.model.parameters(), **params)
        self.model_wrapped, self.optimizer = self.accelerator.prepare(self.model, optimizer)
        for _ in range(steps):
            loss = self.model_wrapped(*batch())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def evaluate(self):
        self.model.eval()
        with torch.no_grad():
            return sum(self.model(*batch()).item() for _ in range(4)) / 4

    def hyperparameter_search(self, n_trials):
        results = {}
        for trial in range(n_trials):
            params = {"lr": 10 ** random.uniform(-5, -3), "weight_decay": random.uniform(0, 0.1)}
            self.train(params)
            results[trial] = self.evaluate()
            if sys.argv[1] == "fixed":
                self.model = self.model_wrapped = self.optimizer = None
                self.accelerator.clear()
                gc.collect()
                torch.cuda.empty_cache()
            print(trial, params, results[trial], torch.cuda.max_memory_allocated() >> 20, "MiB")
        return min(results, key=results.get)


def batch(size=8, length=128):
    return torch.randint(0, VOCAB, (size, length)).cuda(), torch.randint(0, 5, (size,)).cuda()


print("best", Trainer(ReviewClassifier).hyperparameter_search(6))
