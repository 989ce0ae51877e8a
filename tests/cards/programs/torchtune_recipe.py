# SPDX-License-Identifier: Apache-2.0
"""torchtune_recipe.py RECIPE CONFIG [NAME=VALUE...]: a recipe of torchtune with a config of its own, ended after three updates. In place
of the downloads: weights as torchtune makes them, random tokens in rows as long as the config allows."""
import importlib.util
import re
import runpy
import sys
from pathlib import Path

import torch
from omegaconf import OmegaConf

sys.modules["stand_in"] = sys.modules["__main__"]  # what the config names
PLACE = Path(importlib.util.find_spec("recipes").origin).parent  # it may not be imported
UPDATES = 3


class Checkpointer:
    def __init__(self, **settings):
        pass

    def load_checkpoint(self):
        return {"model": {}}

    def save_checkpoint(self, *words, **settings):
        pass


class Tokenizer:
    pad_id, eos_id = 0, 2

    def __init__(self, max_seq_len=None):
        self.max_seq_len = max_seq_len


class Rows(torch.utils.data.Dataset):
    """The texts are a few hundred tokens long; packed, they fill each row."""

    def __init__(self, tokenizer, texts=96, length=256, **settings):
        self.lengths = [length + 32 * (i % 5 - 2) for i in range(texts)]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        tokens = torch.randint(3, 30000, (self.lengths[i],), generator=torch.Generator().manual_seed(i)).tolist()
        return {"tokens": tokens, "labels": tokens}


def rows(tokenizer, packed=False, **settings):
    from torchtune.datasets import PackedDataset
    made = Rows(tokenizer)
    return PackedDataset(made, max_seq_len=tokenizer.max_seq_len) if packed else made


def any_state(load=torch.nn.Module.load_state_dict):
    """An empty checkpoint fits every model."""
    def load_state_dict(module, state, *words, **settings):
        return load(module, state, *words, **settings) if state else torch.nn.modules.module._IncompatibleKeys([], [])
    torch.nn.Module.load_state_dict = load_state_dict


def main(recipe, config, *settings):
    any_state()
    given = OmegaConf.load(PLACE / "configs" / (config + ".yaml"))
    given.checkpointer = {"_component_": "stand_in.Checkpointer", "model_type": "LLAMA3_2"}
    given.tokenizer = {"_component_": "stand_in.Tokenizer", "max_seq_len": given.tokenizer.max_seq_len}
    given.dataset = {"_component_": "stand_in.rows", "packed": given.dataset.get("packed", False)}
    given.output_dir, given.metric_logger.log_dir = str(Path("out").resolve()), str(Path("out/logs").resolve())
    given.epochs, given.max_steps_per_epoch = 1, UPDATES
    OmegaConf.save(given, "config.yaml")
    sys.argv = [recipe, "--config", "config.yaml", *settings]
    try:
        runpy.run_path(str(PLACE / (recipe + ".py")), run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    logged = [float(n) for log in Path("out/logs").glob("log_*") for n in re.findall(r"peak_memory_active:([\d.]+)", log.read_text())]
    print("peak active: %.4f GiB" % max(logged))


if __name__ == "__main__":
    main(*sys.argv[1:])
