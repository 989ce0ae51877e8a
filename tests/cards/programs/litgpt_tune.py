# SPDX-License-Identifier: Apache-2.0
"""litgpt_tune.py CONFIG.yaml MODEL: litgpt's own finetuning, called with the settings of one of its config files and ended after two
updates of two batches each at most. In place of the downloads: weights as litgpt makes them, a tokenizer without words, rows of random
tokens as long as the config
allows (the longest texts of Alpaca2k are). SOURCE is litgpt of any time: what it does not know is not given."""
import dataclasses
import importlib
import inspect
import os
import sys
from pathlib import Path

import torch
import yaml

sys.path.insert(0, os.environ["SOURCE"])

from litgpt.args import EvalArgs, TrainArgs  # noqa: E402
from litgpt.config import Config  # noqa: E402
from litgpt.data import DataModule  # noqa: E402
from litgpt.utils import save_config  # noqa: E402

FINETUNING = {"full": "full", "lora": "lora", "qlora": "lora"}
STEPS = 2


class Tokenizer:
    eos_id = 1

    def __init__(self, folder):
        pass

    def encode(self, text, device=None, **settings):
        return torch.zeros(len(text.split()), dtype=torch.int64, device=device)

    def decode(self, tokens):
        return "..."


class Texts(DataModule):
    """Rows that are all as long as the longest."""

    def __init__(self, vocabulary):
        self.vocabulary, self.prompt_style = vocabulary, importlib.import_module("litgpt.prompts").Default()

    def connect(self, tokenizer=None, batch_size=1, max_seq_length=None):
        self.batch, self.length = batch_size, max_seq_length

    def dataloader(self, rows):
        made = torch.Generator().manual_seed(1)
        tokens = [torch.randint(self.vocabulary, (self.length,), generator=made) for _ in range(rows)]

        def batch(chosen):
            ids = torch.stack([row["input_ids"] for row in chosen])
            counts = torch.full((len(chosen), 1), self.length)
            return {"input_ids": ids, "labels": ids.clone(), "token_counts": {"raw": counts, "raw_plus_prompt_template": counts}}
        return torch.utils.data.DataLoader([{"input_ids": t, "labels": t} for t in tokens], self.batch, collate_fn=batch)

    def train_dataloader(self):
        return self.dataloader(128)

    def val_dataloader(self):
        return self.dataloader(16)


def known(kind, given, **more):
    """The settings of a dataclass that a config file gives."""
    fields = {f.name for f in dataclasses.fields(kind)}
    return kind(**{k: v for k, v in {**given, **more}.items() if k in fields})


def optimizer(given):
    """Before it was a setting, it was AdamW."""
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in given["init_args"].items()} if given else {}
    return given and {"class_path": given["class_path"], "init_args": settings}


def nothing(*words, **settings):
    pass


def without_downloads(module):
    module.Tokenizer = Tokenizer
    if hasattr(module, "auto_download_checkpoint"):
        module.auto_download_checkpoint = lambda model_name, **settings: Path(model_name)
    for name in ("check_valid_checkpoint_dir", "load_checkpoint", "copy_config_files", "merge_lora", "save_hyperparameters",
                 "save_prompt_style", "save_lora_checkpoint"):
        if hasattr(module, name):
            setattr(module, name, nothing)


def main(path, name):
    config, folder = yaml.safe_load(open(path)), Path("checkpoint") / name
    module = importlib.import_module("litgpt.finetune." + FINETUNING[Path(path).stem])
    without_downloads(module)
    folder.mkdir(parents=True, exist_ok=True)
    model = Config.from_name(name)
    save_config(model, folder)
    given = {**config, "checkpoint_dir": folder, "out_dir": Path("out"), "devices": 1, "data": Texts(model.vocab_size), "optimizer": optimizer(config.get("optimizer")),
             "train": known(TrainArgs, config["train"], max_steps=STEPS, save_interval=None,
                            global_batch_size=min(config["train"]["global_batch_size"], 2 * config["train"]["micro_batch_size"])),
             "eval": known(EvalArgs, config["eval"], final_validation=False)}
    asked = inspect.signature(module.setup).parameters
    module.setup(**{k: v for k, v in given.items() if k in asked})


if __name__ == "__main__":
    main(*sys.argv[1:])
