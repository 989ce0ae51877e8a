# SPDX-License-Identifier: Apache-2.0
"""A loop in the manner of the large training frameworks: hooks, callbacks, a closure that runs forward and backward inside
the optimizer's step, automatic moving of batches, logged values that are kept."""
import contextlib

import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models import VisionTransformer

import runner
import truth


class LitModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = VisionTransformer(image_size=96, patch_size=8, num_layers=4, num_heads=6, hidden_dim=384, mlp_dim=1536, num_classes=100)
        self.logged = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        said = self(x)
        loss = F.cross_entropy(said, y)
        self.logged.append({"loss": loss.detach(), "accuracy": (said.argmax(1) == y).float().mean()})
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Trainer:
    def __init__(self, epochs, precision=None):
        self.epochs = epochs
        self.precision = precision

    def move(self, thing):
        if isinstance(thing, torch.Tensor):
            return thing.to("cuda", non_blocking=True)
        return type(thing)(self.move(t) for t in thing)

    def fit(self, module, loader):
        self.module = module.to("cuda")
        self.optimizer = module.configure_optimizers()
        truth.optimizer(self.optimizer)
        for _ in range(self.epochs):
            for index, batch in enumerate(loader):
                with truth.phase("data"):
                    self.batch = self.move(batch)
                with truth.phase("step"):
                    self.optimizer.step(closure=lambda: self.closure(index))
                truth.mark("step")

    def closure(self, index):
        with truth.phase("forward"), self.precision() if self.precision else contextlib.nullcontext():
            loss = self.module.training_step(self.batch, index)
        truth.mark("forward")
        self.optimizer.zero_grad()
        with truth.phase("backward"):
            loss.backward()
        truth.mark("backward")
        return loss


data = torch.utils.data.TensorDataset(torch.randn(60, 3, 96, 96), torch.zeros(60, dtype=torch.long))
module = LitModule()
truth.model(module)
trainer = Trainer(1, lambda: torch.autocast("cuda", dtype=torch.bfloat16))
truth.holds("inputs", "the batch", lambda: [trainer.batch])
trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=20, pin_memory=True))
truth.finish()
