# SPDX-License-Identifier: Apache-2.0
"""titan.py [OPTION...]: torchtitan's own train.py with its options, of which two are set here. In place of the downloads: random tokens, a
tokenizer of which only the number of words is asked."""
import importlib.util
import os
import sys

import torch

SOURCE = os.environ["SOURCE"]
sys.path.insert(0, SOURCE)
WORDS = 128256

import torchtitan.datasets  # noqa: E402


class Tokenizer:
    n_words = WORDS


class Tokens(torch.utils.data.IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        made = torch.Generator().manual_seed(1)
        while True:
            tokens = torch.randint(WORDS, (self.length + 1,), generator=made)
            yield tokens[1:], tokens[:-1]


class Loader(torch.utils.data.DataLoader):
    """Of a checkpoint it has nothing."""

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def main():
    torchtitan.datasets.build_tokenizer = lambda kind, path: Tokenizer()
    torchtitan.datasets.build_hf_data_loader = lambda name, path, tokenizer, batch, length, world, rank, infinite=True: Loader(Tokens(length), batch)
    found = importlib.util.spec_from_file_location("train", SOURCE + "/train.py")
    train = importlib.util.module_from_spec(found)
    found.loader.exec_module(train)
    config = train.JobConfig()
    config.parse_args(["--metrics.disable_color_printing", "--training.steps", "10", *sys.argv[1:]])
    train.main(config)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
