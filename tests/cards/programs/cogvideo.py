# SPDX-License-Identifier: Apache-2.0
"""cogvideo.py SCRIPT [OPTION...]: diffusers-torchao's benchmark of CogVideoX-5b, with three steps in place of 50, and its time not measured.
In place of the downloads: parts whose values are not set, a tokenizer that gives zeros. At its end the benchmark deletes all of the user's
files in /tmp; here it deletes none."""
import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import torch

STEPS = 3


class Tokenizer:
    model_max_length = 226

    def __call__(self, text, **settings):
        return SimpleNamespace(input_ids=torch.zeros(len(text) if isinstance(text, list) else 1, 226, dtype=torch.int64))

    def batch_decode(self, tokens):
        return [""]


def main(script, *options):
    folder = str(Path(script).parent)
    sys.path.insert(0, folder)
    import cogvideo_parts as parts
    import diffusers
    import diffusers.utils
    sys.modules["tabulate"] = SimpleNamespace(tabulate=lambda rows, **settings: "")  # the package of the table that it prints
    import utils
    made = diffusers.CogVideoXPipeline
    called = made.__call__

    def pipeline(name, torch_dtype):
        return made(tokenizer=Tokenizer(), text_encoder=parts.text_encoder(torch_dtype), vae=parts.vae("5b", torch_dtype), transformer=parts.transformer("5b", torch_dtype),
                    scheduler=diffusers.CogVideoXDDIMScheduler())
    made.from_pretrained = staticmethod(pipeline)
    made.__call__ = lambda self, **settings: called(self, **{**settings, "num_inference_steps": STEPS})
    utils.cleanup_tmp_directory = lambda: None
    utils.benchmark_fn = lambda run, *words, **settings: (run(*words, **settings), 0.0)[1]
    utils.pretty_print_results = lambda info, precision=3: print(*(f"{key}: {value}" for key, value in info.items()), sep="\n", flush=True)
    diffusers.utils.export_to_video = lambda *words, **settings: None
    os.environ.pop("TORCH_LOGS", None)
    sys.argv = [script, *options]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
