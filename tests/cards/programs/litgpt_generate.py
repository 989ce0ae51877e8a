# SPDX-License-Identifier: Apache-2.0
"""litgpt_generate.py base|sequentially|tp MODEL PRECISION: lit-gpt's own scripts of that name, 256 new tokens. In place of the downloads:
weights that are not set, a tokenizer that gives eight random tokens."""
import importlib
import os
import sys
from pathlib import Path

import torch

SOURCE = os.environ["SOURCE"]
sys.path[0] = SOURCE  # in place of this folder, whose generate.py has the name of a folder there
NEW = 256


class Tokenizer:
    eos_id = -1

    def __init__(self, folder):
        pass

    def encode(self, text, device=None):
        return torch.randint(1000, (8,), device=device)

    def decode(self, tokens):
        return "..."


def main(script, name, precision):
    module = importlib.import_module("generate." + script)
    config = module.Config.from_name(name)
    module.Config.from_json = staticmethod(lambda path: config)
    module.Tokenizer = Tokenizer
    module.check_valid_checkpoint_dir = lambda folder: None
    if script == "base":
        module.load_checkpoint = lambda fabric, model, path: None
        module.main(precision=precision, max_new_tokens=NEW, checkpoint_dir=Path("checkpoint"))
        return
    with torch.device("meta"):
        shapes = {key: value.shape for key, value in module.GPT(config).state_dict().items()}
    kind = torch.bfloat16 if precision.startswith("bf16") else torch.float32
    torch.load = lambda *words, **settings: {key: torch.empty(shape, dtype=kind) for key, shape in shapes.items()}
    module.main(precision=precision, max_new_tokens=NEW, num_samples=2, checkpoint_dir=Path("checkpoint"))


if __name__ == "__main__":
    main(*sys.argv[1:])
