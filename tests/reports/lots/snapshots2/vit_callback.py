# SPDX-License-Identifier: Apache-2.0
"""An image classifier with a callback that records from the beginning of train() on and writes at its end; model and state are made before it."""
import datetime
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import ViTConfig, ViTForImageClassification

FOLDER, FIXED = Path(sys.argv[1]), sys.argv[2:] == ["fixed"]


class MemorySnapshotCallback:
    def __init__(self, max_entries=100_000):
        self.max_entries = max_entries

    def on_train_begin(self):
        torch.cuda.memory._record_memory_history(max_entries=self.max_entries)

    def on_train_end(self):
        timestamp = datetime.datetime.now().strftime("%b_%d_%H_%M_%S")
        torch.cuda.memory._dump_snapshot(str(FOLDER / f"host_{timestamp}.pickle"))
        torch.cuda.memory._record_memory_history(enabled=None)


class Trainer:
    def __init__(self, model, callback):
        self.model, self.callback = model.cuda().train(), callback
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        if FIXED:
            model.gradient_checkpointing_enable()

    def training_step(self, images, labels):
        loss = F.cross_entropy(self.model(pixel_values=images).logits, labels)
        loss.backward()
        self.optimizer.step()
        self.model.zero_grad()

    def train(self, steps):
        self.callback.on_train_begin()
        for _ in range(steps):
            self.training_step(torch.rand(24, 3, 224, 224).cuda(), torch.randint(0, 1000, (24,)).cuda())
        self.callback.on_train_end()


trainer = Trainer(ViTForImageClassification(ViTConfig(hidden_size=384, num_hidden_layers=8, num_attention_heads=6, intermediate_size=1536,
                                                      num_labels=1000, attn_implementation="eager")), MemorySnapshotCallback())
trainer.train(3)
states = [t for s in trainer.optimizer.state.values() for t in s.values() if t.is_cuda]
print("truth", {"parameters": sum(p.nbytes for p in trainer.model.parameters()), "optimizer_state": sum(t.nbytes for t in states)},
      torch.cuda.max_memory_allocated())
