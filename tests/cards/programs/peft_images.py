# SPDX-License-Identifier: Apache-2.0
"""peft_images.py EXPERIMENT: the training loop of PEFT's comparison of methods for images, unchanged, with FLUX.2-klein 4B. In place of
the downloads: weights that are not set, noise for the 20 pictures, embeddings of the right shape for their texts. A few steps are run;
the rest of the 100 whose mean is published repeats the last."""
import inspect
import os
import sys
from types import SimpleNamespace

import torch

FOLDER = os.environ["SOURCE"] + "/method_comparison/image-gen"
sys.modules["torchao"] = None  # not installed in the publication's list of packages, and newer here than PEFT then knew
sys.path[:0] = [FOLDER, os.environ["SOURCE"] + "/src"]

import run  # noqa: E402
import utils  # noqa: E402
from diffusers import AutoencoderKLFlux2, FlowMatchEulerDiscreteScheduler, Flux2KleinPipeline, Flux2Transformer2DModel  # noqa: E402
from peft import PeftConfig, get_peft_model  # noqa: E402
from transformers import Dinov2Config, Dinov2Model, set_seed  # noqa: E402

STEPS, PUBLISHED = 5, 100
KLEIN = dict(num_layers=5, num_single_layers=20, num_attention_heads=24, joint_attention_dim=7680, guidance_embeds=False)
PICTURES, TOKENS = 14, 512
METHODS = ("_patchify_latents", "_prepare_latent_ids", "_pack_latents", "_unpack_latents_with_ids", "_prepare_text_ids")


def transformer_of(config, given):
    """As get_pipeline makes it: the adapter is added on the device, then all goes to the host and comes back."""
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = Flux2Transformer2DModel(**KLEIN)
    torch.set_default_dtype(torch.float32)
    if given.use_gc:
        model.enable_gradient_checkpointing()
    model = get_peft_model(model, config, autocast_adapter_dtype=given.autocast_adapter_dtype) if config else model.requires_grad_(True)
    move = model.to
    move("meta")  # as large on the device as on the host, and no copy
    torch.cuda.empty_cache()
    model.to = lambda where: model.to_empty(device=where)
    return model.train()


def pipeline_of(config, given):
    vae = AutoencoderKLFlux2().to(torch.bfloat16).requires_grad_(False).eval()

    def encode(prompt, **settings):
        embeddings = torch.zeros(1, TOKENS, KLEIN["joint_attention_dim"], dtype=torch.bfloat16, device="cuda")
        return embeddings, Flux2KleinPipeline._prepare_text_ids(embeddings).to("cuda")
    return SimpleNamespace(transformer=transformer_of(config, given), vae=vae, text_encoder=torch.nn.Linear(1, 1), scheduler=FlowMatchEulerDiscreteScheduler(),
                           encode_prompt=encode, **{name: getattr(Flux2KleinPipeline, name) for name in METHODS})


def data(train_config, print_fn):
    pictures = list(torch.rand(PICTURES, 3, train_config.resolution, train_config.resolution))
    return dict(pixel_values=pictures, prompts=train_config.instance_prompts[:PICTURES], repeats=train_config.repeats), [], []


def main(experiment):
    folder = FOLDER + "/experiments/" + experiment
    config = None if experiment.startswith("full-finetuning/") else PeftConfig.from_pretrained(folder)
    given = run.get_train_config(folder + "/" + utils.FILE_NAME_TRAIN_PARAMS)
    given.max_steps = STEPS
    before = run.init_accelerator()
    set_seed(given.seed)
    run.get_dino_encoder = lambda model, size: (None, Dinov2Model(Dinov2Config(image_size=518)).to("cuda").eval())
    run.get_train_valid_test_datasets = data
    run.evaluate = run.measure_drift = lambda **settings: 0.0
    device = {"device_type": "cuda"} if "device_type" in inspect.signature(run.train).parameters else {}
    result = run.train(**device, pipeline=pipeline_of(config, given), train_config=given, accelerator_memory_init=before,
                       is_adalora=config is not None and config.peft_type == "ADALORA", print_verbose=print)
    result = result[0] if isinstance(result, tuple) else result
    log = result.accelerator_memory_reserved_log
    print(result.status, result.error_msg, "parameters", result.num_total_params, "reserved", log)
    assert len(log) == STEPS
    print(f"mem reserved avg: {(sum(log) + (PUBLISHED - STEPS) * log[-1]) / PUBLISHED / 1e9:.4f} GB")


if __name__ == "__main__":
    main(sys.argv[1])
