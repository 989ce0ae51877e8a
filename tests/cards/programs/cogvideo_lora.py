# SPDX-License-Identifier: Apache-2.0
"""cogvideo_lora.py RANK BATCH [OPTION...]: cogvideox-factory's training of LoRA for CogVideoX-2b on latents that were made before, until it says
its memory before validation. In place of the downloads: parts whose values are not set, latents of noise."""
import os
import sys
from importlib.machinery import ModuleSpec
from types import SimpleNamespace
from unittest.mock import MagicMock

import torch

SOURCE = os.environ["SOURCE"]
sys.path.insert(0, SOURCE + "/training")

import cogvideo_parts as parts  # noqa: E402

sys.modules["wandb"], sys.modules["decord"] = (MagicMock(__spec__=ModuleSpec(name, None)) for name in ("wandb", "decord"))

import cogvideox_text_to_video_lora as program  # noqa: E402

STEPS, KIND = 3, torch.bfloat16


class Latents(torch.utils.data.Dataset):
    def __init__(self, **settings):
        pass

    def __len__(self):
        return STEPS

    def __getitem__(self, rows):
        return [{"prompt": torch.zeros(226, 4096, dtype=KIND), "video": torch.zeros(32, 13, 60, 90, dtype=KIND)} for _ in rows]


class Sampler:
    def __init__(self, data, batch_size=1, shuffle=True):
        self.batch = batch_size

    def __iter__(self):
        return iter([list(range(self.batch)) for _ in range(STEPS)])

    def __len__(self):
        return STEPS


class Said:
    steps = iter((("before training", torch.cuda.memory_allocated), ("before validation", torch.cuda.max_memory_allocated)))


def say(device):
    when, figure = next(Said.steps)
    print(f"{when}: {figure() / 2**30:.3f} GiB", flush=True)
    if when == "before validation":
        os._exit(0)


def main(rank, batch, *options):
    program.AutoTokenizer = SimpleNamespace(from_pretrained=lambda *words, **settings: None)
    program.T5EncoderModel = SimpleNamespace(from_pretrained=lambda *words, **settings: parts.text_encoder(KIND))
    program.CogVideoXTransformer3DModel.from_pretrained = lambda *words, **settings: parts.transformer("2b", torch.float16)
    program.AutoencoderKLCogVideoX.from_pretrained = lambda *words, **settings: parts.vae("2b", KIND)
    program.CogVideoXDPMScheduler.from_pretrained = lambda *words, **settings: program.CogVideoXDPMScheduler()
    program.VideoDatasetWithResizing, program.BucketSampler, program.print_memory = Latents, Sampler, say
    sys.argv = ["train", "--pretrained_model_name_or_path", "THUDM/CogVideoX-2b", "--data_root", ".", "--load_tensors", "--rank", rank, "--lora_alpha", rank, "--mixed_precision", "bf16",
                "--train_batch_size", batch, "--max_train_steps", str(STEPS), "--optimizer", "adamw", "--validation_prompt", "a", "--validation_epochs", "1", "--enable_slicing",
                "--enable_tiling", "--allow_tf32", "--output_dir", "out", *options]
    program.main(program.get_args())


if __name__ == "__main__":
    main(*sys.argv[1:])
