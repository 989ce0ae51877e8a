# SPDX-License-Identifier: Apache-2.0
"""A text classifier is trained, and its checkpoints are written by a thread beside the training."""
import io
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH, LAYERS, CLASSES, LENGTH, BATCH = 24_000, 640, 8, 20, 192, 8


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 10, 4 * WIDTH, batch_first=True, norm_first=True, activation="gelu")
        self.embed, self.encoder, self.head = nn.Embedding(VOCAB, WIDTH), nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False), nn.Linear(WIDTH, CLASSES)

    def training_step(self, batch):
        tokens, labels = batch
        return F.cross_entropy(self.head(self.encoder(self.embed(tokens)).mean(1)), labels)


def apply_to_collection(data, function):
    if isinstance(data, torch.Tensor):
        return function(data)
    if isinstance(data, dict):
        return {key: apply_to_collection(value, function) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(apply_to_collection(value, function) for value in data)
    return data


class SlowStorage:
    """A bucket at the other end of a thin line."""
    def save_checkpoint(self, checkpoint, path):
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        time.sleep(1.5)
        print("stored", path, len(buffer.getvalue()) >> 20, "MiB")


class AsyncCheckpointIO:
    def __init__(self, checkpoint_io):
        self.checkpoint_io, self.executor = checkpoint_io, ThreadPoolExecutor(max_workers=1)

    @staticmethod
    def _clone_tensor(tensor):
        return tensor.detach().cpu().clone() if sys.argv[1] == "fixed" else tensor.detach().clone()

    def save_checkpoint(self, checkpoint, path):
        self.executor.submit(self.checkpoint_io.save_checkpoint, apply_to_collection(checkpoint, self._clone_tensor), path)

    def teardown(self):
        self.executor.shutdown(wait=True)


class Trainer:
    def __init__(self, max_steps, every_n_train_steps, plugin):
        self.max_steps, self.every_n_train_steps, self.plugin = max_steps, every_n_train_steps, plugin

    def fit(self, model, loader):
        optimizer = torch.optim.AdamW(model.to("cuda").parameters(), lr=1e-4)
        for step, batch in enumerate(loader, 1):
            loss = model.training_step([t.to("cuda") for t in batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % self.every_n_train_steps == 0:
                checkpoint = {"global_step": step, "state_dict": model.state_dict(), "optimizer_states": [optimizer.state_dict()]}
                self.plugin.save_checkpoint(checkpoint, f"step={step}.ckpt")
                print("step", step, loss.item(), torch.cuda.max_memory_allocated() >> 20, "MiB")
        self.plugin.teardown()


loader = ((torch.randint(0, VOCAB, (BATCH, LENGTH)), torch.randint(0, CLASSES, (BATCH,))) for _ in range(9))
Trainer(max_steps=9, every_n_train_steps=6, plugin=AsyncCheckpointIO(SlowStorage())).fit(Classifier(), loader)
