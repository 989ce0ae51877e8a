# SPDX-License-Identifier: Apache-2.0
# ranks: 2
# needs: lightning
"""Lightning with its strategy of shards (FSDP), a decoder layer a unit."""
import lightning
import torch
from lightning.pytorch.strategies import FSDPStrategy
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Decoder(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(6000, 512)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0) for _ in range(4))
        self.head = nn.Linear(512, 6000)

    def forward(self, ids):
        x = self.tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

    def training_step(self, batch, i):
        return nn.functional.cross_entropy(self(batch[0]).flatten(0, 1), batch[0].flatten())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


lightning.seed_everything(0)
rows = DataLoader(TensorDataset(torch.randint(0, 6000, (32, 192))), batch_size=4)
trainer = lightning.Trainer(accelerator="gpu", devices=2, max_steps=4, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                            strategy=FSDPStrategy(auto_wrap_policy={nn.TransformerEncoderLayer}, state_dict_type="sharded"))
trainer.fit(Decoder(), rows)
