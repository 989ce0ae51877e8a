# SPDX-License-Identifier: Apache-2.0
"""quantized_training.py SCRIPT [OPTION...]: torchao's pretraining of a small Llama as its README says: 1B, checkpointing, batch 4 x 2,048. In
place of TinyStories, which the script keeps on the card as 16-bit tokens: zeros, as many as its text of 2.2 GB has (of other tokenizers
541 million were published; this one adds marks of begin and end, and two for an empty line)."""
import os
import runpy
import sys
import types

TOKENS = 560_000_000


def log(said, step=0):
    print(f"step {step} max_memory_allocated: {said['max_memory_allocated']:.3f} GB", flush=True)


def main(script, *options):
    sys.path.insert(0, os.environ["SOURCE"])
    sys.modules["wandb"] = types.SimpleNamespace(init=lambda **settings: types.SimpleNamespace(log=log, finish=lambda: None))
    with open("tinystories.bin", "wb") as file:
        file.truncate(2 * TOKENS)
    sys.argv = [script, "--model", "1B", "--activation_checkpointing", "--batch_size", "4", "--seq_len", "2048", "--n_steps", "12", *options]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
