# SPDX-License-Identifier: Apache-2.0
"""masked.py mae|deit|audio|swin WHAT: the training programs of four repositories that follow the references of torchvision, with their own
`main`. In place of the downloads: images or spectrograms of zeros, weights as they are made, and modules that only read files."""
import argparse
import importlib
import os
import runpy
import sys
import types
from unittest.mock import MagicMock

import torch

SOURCE = os.environ["SOURCE"]
ALONE = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}  # torch.distributed.launch with one process


class Rows(torch.utils.data.Dataset):
    def __init__(self, rows, row):
        self.rows, self.row = rows, row

    def __len__(self):
        return self.rows

    def __getitem__(self, i):
        return self.row


def images(rows, classes=1000):
    return Rows(rows, (torch.zeros(3, 224, 224), classes - 1))


def older():
    """What these programs ask of older packages."""
    sys.path.insert(0, SOURCE)
    sys.modules["torch._six"] = types.SimpleNamespace(inf=float("inf"), string_classes=(str,), container_abcs=__import__("collections").abc)
    import timm
    timm.__version__ = "0.3.2"


def called(module, data, options):
    """Its main, with the settings of its command line."""
    program = importlib.import_module(module)
    program.build_dataset = lambda is_train, args: data
    program.main(argparse.ArgumentParser(parents=[program.get_args_parser()], conflict_handler="resolve").parse_args(options))


def mae(batch):
    called("main_finetune", images(11 * int(batch)), ["--eval", "--model", "vit_base_patch16", "--batch_size", batch, "--num_workers", "0"])


def deit(batch):
    os.environ.update(ALONE)
    called("main", (images(11 * int(batch), 100), 100), ["--eval", "--dist-eval", "--data-set", "CIFAR", "--model", "deit_small_patch16_224",
                                                         "--batch-size", str(int(batch) * 2 // 3), "--num_workers", "0"])


def audio(what):
    for name in ("torchaudio", "librosa", "librosa.display", "soundfile", "cv2", "sklearn", "sklearn.metrics", "scipy", "scipy.stats", "dataset", "torchvision.io"):
        sys.modules.setdefault(name, MagicMock())
    options = ["--model", "vit_base_patch16", "--dataset", "audioset", "--num_workers", "0", "--log_dir", "log", "--output_dir", ""]
    if what == "train":
        rows = 12 * 4 * 64
        options += ["--batch_size", "4", "--mask_t_prob", "0.2", "--mask_f_prob", "0.2", "--mask_2d", "True", "--roll_mag_aug", "True", "--first_eval_ep", "20", "--epochs", "1",
                    "--dist_eval", "--blr", "2e-4", "--warmup_epochs", "10"]
        os.environ["LOCAL_RANK"] = "0"
    else:
        rows = 16 if what == "first" else 19148
        options += ["--eval", "--batch_size", "16"]
        os.environ.update(ALONE)
    row = torch.zeros(1, 1024, 128), torch.zeros(527), "clip"
    sys.modules["dataset"].AudiosetDataset = lambda *words, **settings: Rows(rows, row)
    sys.modules["util.stat"] = types.SimpleNamespace(calculate_stats=lambda output, target: [{"AP": 0.0}] * 527, concat_all_gather=gathered)
    called("main_finetune_as", None, options)


def gathered(tensor):
    every = [torch.ones_like(tensor) for _ in range(torch.distributed.get_world_size())]
    torch.distributed.all_gather(every, tensor, async_op=False)
    return torch.cat(every, dim=0)


def swin(batch):
    from timm.data import Mixup

    def build_loader(config):
        rows = images(12 * int(batch))
        loader = torch.utils.data.DataLoader(rows, int(batch), sampler=torch.utils.data.DistributedSampler(rows, 1, 0))
        mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, cutmix_minmax=None, prob=1.0, switch_prob=0.5, mode="batch", label_smoothing=0.1, num_classes=1000)
        return rows, rows, loader, [], mixup
    sys.modules["data"] = types.SimpleNamespace(build_loader=build_loader)
    sys.modules["termcolor"] = types.SimpleNamespace(colored=lambda text, *words, **settings: text)
    sys.argv = ["main.py", "--cfg", SOURCE + "/configs/swin/swin_tiny_patch4_window7_224.yaml", "--batch-size", batch, "--output", "out", "--opts", "TRAIN.EPOCHS", "2",
                "TRAIN.WARMUP_EPOCHS", "1", "SAVE_FREQ", "9"]
    runpy.run_path(SOURCE + "/main.py", run_name="__main__")


if __name__ == "__main__":
    older()
    {"mae": mae, "deit": deit, "audio": audio, "swin": swin}[sys.argv[1]](sys.argv[2])
