# SPDX-License-Identifier: Apache-2.0
"""nanochat.py: nanochat's own base_train for three updates. In place of the downloads: documents of random tokens, a tokenizer of which only
the number of words is asked; nothing is saved, and the questions of its metric are not asked."""
import os
import runpy
import sys
import types

import numpy
import torch

SOURCE = os.environ["SOURCE"]
WORDS, DOCUMENT = 65536, 500


class Tokenizer:
    def get_vocab_size(self):
        return WORDS

    def get_bos_token_id(self):
        return WORDS - 9

    def encode(self, documents, prepend=None, num_threads=1):
        return documents

    def __call__(self, text, **settings):
        return [1] * 8

    def decode(self, tokens):
        return "..."


def documents(split, start=0, step=1):
    made = numpy.random.default_rng(start)
    while True:
        yield [row.tolist() for row in made.integers(0, WORDS - 9, (1024, DOCUMENT))]


def stand_in(name, **members):
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module


def main():
    os.chdir(SOURCE)
    sys.path.insert(0, SOURCE)
    stand_in("wandb")
    stand_in("nanochat.tokenizer", get_tokenizer=Tokenizer, get_token_bytes=lambda device: torch.ones(WORDS, dtype=torch.int32, device=device))
    stand_in("nanochat.dataset", parquets_iter_batched=documents)
    stand_in("nanochat.checkpoint_manager", save_checkpoint=lambda *words, **settings: None)
    stand_in("nanochat.report", get_report=lambda: types.SimpleNamespace(log=lambda **settings: None))
    stand_in("scripts.base_eval", evaluate_model=lambda *words, **settings: {"core_metric": 0.0, "centered_results": {}})
    sys.argv = ["base_train.py", "--num_iterations=3", f"--eval_tokens={2 * 524288}"]
    runpy.run_path(SOURCE + "/scripts/base_train.py", run_name="__main__")


if __name__ == "__main__":
    main()
