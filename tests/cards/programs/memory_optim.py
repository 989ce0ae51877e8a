# SPDX-License-Identifier: Apache-2.0
"""memory_optim.py SCRIPT: a script of pytorch-memory-optim. In place of the downloads: weights as torchvision makes them, a few batches of
noise. It ends with its line about memory."""
import runpy
import sys
import types
from pathlib import Path

import torch
import torchvision

BATCHES = 8


class Noise(torch.utils.data.Dataset):
    def __init__(self, batches, size):
        self.rows = batches * size

    def __len__(self):
        return self.rows

    def __getitem__(self, i):
        return torch.zeros(3, 224, 224), i % 10


def loaders(batch_size, num_workers=0, validation_fraction=None, train_transforms=None, test_transforms=None):
    made = [torch.utils.data.DataLoader(Noise(n, batch_size), batch_size) for n in (BATCHES, 2, 2)]
    return tuple(made)


def main(script):
    sys.modules["watermark"] = types.SimpleNamespace(watermark=lambda **settings: "")
    sys.path.insert(0, str(Path(script).parent))
    import local_utilities
    local_utilities.get_dataloaders_cifar10 = loaders
    torchvision.models._api.WeightsEnum.get_state_dict = lambda self, *words, **settings: {}
    torchvision.models.VisionTransformer.load_state_dict = lambda self, state, *words, **settings: None
    sys.argv = [script]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
