# SPDX-License-Identifier: Apache-2.0
"""low_bit.py SCRIPT OPTIMIZER: torchao's benchmark of optimizers as its README says: ViT-H, bfloat16 autocast, compiled, batch 8. In place of
the downloads: weights as timm makes them, a few batches of noise."""
import os
import runpy
import sys
import types

import torch

BATCHES = 6


class Images(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return self.rows

    def __getitem__(self, i):
        return {"image": torch.zeros(3, 224, 224), "label": i % 45}

    def select_columns(self, names):
        return self

    def set_transform(self, transform):
        pass


def main(script, optimizer):
    sys.path.insert(0, os.environ["SOURCE"])
    logger = types.SimpleNamespace(log=lambda *words, **settings: None)
    sys.modules["wandb"] = types.SimpleNamespace(init=lambda **settings: logger)
    sys.modules["datasets"] = types.SimpleNamespace(load_dataset=lambda name, split: Images(8 * BATCHES))
    import timm
    made = timm.create_model
    timm.create_model = lambda name, pretrained=True, **settings: made(name, pretrained=False, **settings)
    sys.argv = [script, "--model", "timm/vit_huge_patch14_224.orig_in21k", "--amp", "bf16", "--compile", "--n_epochs", "1", "--batch_size", "8", "--n_workers", "0",
                "--cosine_lr_scheduler", "--seed", "1", "--optim", optimizer]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
