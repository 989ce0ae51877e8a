# SPDX-License-Identifier: Apache-2.0
# ranks: 1 2
# needs: lightning
"""Lightning: fit with a validation in each epoch, then validate; several devices by its default for them."""
import os

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import resnet18


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = resnet18(num_classes=10)

    def training_step(self, batch, i):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, i):
        out = self.net(batch[0])
        self.log("val_loss", nn.functional.cross_entropy(out, batch[1]), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


lightning.seed_everything(0)
n = int(os.environ.get("WORLD_SIZE", "1"))
rows = TensorDataset(torch.randn(96, 3, 96, 96), torch.randint(0, 10, (96,)))
trainer = lightning.Trainer(accelerator="gpu", devices=n, strategy="ddp" if n > 1 else "auto", max_epochs=2, logger=False, limit_train_batches=3,
                            enable_checkpointing=False, enable_progress_bar=False, precision="16-mixed", num_sanity_val_steps=0)
model = Classifier()
trainer.fit(model, DataLoader(rows, batch_size=16, shuffle=True), DataLoader(rows, batch_size=16))
print(trainer.validate(model, DataLoader(rows, batch_size=16)))
