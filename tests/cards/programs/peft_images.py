# SPDX-License-Identifier: Apache-2.0
"""peft_images.py EXPERIMENT: the training loop of PEFT's comparison of methods for images, unchanged, with FLUX.2-klein 4B. In place of
the downloads: weights that are not set, noise for the 20 pictures, a tokenizer without words. A few steps are run; the rest of the 100
whose mean is published repeats the last."""
import inspect
import os
import sys

import torch

FOLDER = os.environ["SOURCE"] + "/method_comparison/image-gen"
sys.modules["torchao"] = None  # not installed in the publication's list of packages, and newer here than PEFT then knew
sys.path[:0] = [FOLDER, os.environ["SOURCE"] + "/src"]

import run  # noqa: E402
import utils  # noqa: E402
from diffusers import AutoencoderKLFlux2, FlowMatchEulerDiscreteScheduler, Flux2KleinPipeline, Flux2Transformer2DModel  # noqa: E402
from peft import PeftConfig, get_peft_model  # noqa: E402
from transformers import BatchEncoding, Dinov2Config, Dinov2Model, Qwen3Config, Qwen3ForCausalLM, set_seed  # noqa: E402

STEPS, PUBLISHED = 5, 100
KLEIN = dict(num_layers=5, num_single_layers=20, num_attention_heads=24, joint_attention_dim=7680, guidance_embeds=False)
TEXTS = dict(hidden_size=2560, intermediate_size=9728, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8, head_dim=128, vocab_size=151936,
             tie_word_embeddings=True)
PICTURES = 14


class Tokenizer:
    def apply_chat_template(self, messages, **settings):
        return messages[0]["content"]

    def __call__(self, text, max_length, **settings):
        row = torch.ones(1, max_length, dtype=torch.int64)
        return BatchEncoding({"input_ids": row, "attention_mask": row.clone()})


def on_host(model):
    """On the meta device in place of the host: as large where it goes next, and no copy. Sizes (FRoD's) stay on the host."""
    def move(where):
        made = {}

        def place(t):
            if id(t) not in made:
                stays = t.device.type == torch.device(where).type or (t.dtype == torch.int64 and t.numel() == 2)
                made[id(t)] = t, t if stays else torch.empty_like(t, device=where)
            return made[id(t)][1]
        return model._apply(place)
    model.to = move
    move("meta")
    return model


def in_bf16(where, make, *words, **settings):
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(where):
        model = make(*words, **settings)
    torch.set_default_dtype(torch.float32)
    return model


def first_weights(layer, r, **settings):
    """SHiRA's mask, whose random choice the device does not compute."""
    mask = torch.zeros(layer.weight.shape, dtype=torch.bool)
    mask.view(-1)[:r * sum(layer.weight.shape)] = True
    return mask


def without_decomposition(frod):
    """Factors as large as FRoD's: they take the host an hour, and weights that are not set have none."""
    frod.model._projection_from_weights = lambda matrices, alpha: torch.zeros(matrices[0].shape[1], matrices[0].shape[1])
    frod.layer.FrodLayer._calculate_frod_u_and_lambda = lambda self, v, w: (torch.zeros(w.shape), torch.zeros(w.shape[1]))


def pipeline_of(config, given):
    """As get_pipeline makes it; the adapter is added on the device, which computes nothing, in place of the host."""
    transformer = in_bf16("cuda", Flux2Transformer2DModel, **KLEIN)
    if given.use_gc:
        transformer.enable_gradient_checkpointing()
    pipeline = Flux2KleinPipeline(scheduler=FlowMatchEulerDiscreteScheduler(), vae=AutoencoderKLFlux2().to(torch.bfloat16).requires_grad_(False).eval(),
                                  text_encoder=on_host(in_bf16("meta", Qwen3ForCausalLM, Qwen3Config(**TEXTS)).requires_grad_(False).eval()),
                                  tokenizer=Tokenizer(), transformer=transformer)
    model = get_peft_model(transformer, config, autocast_adapter_dtype=given.autocast_adapter_dtype) if config else transformer.requires_grad_(True)
    pipeline.transformer = on_host(model).train()
    torch.cuda.empty_cache()
    return pipeline


def data(train_config, print_fn):
    pictures = list(torch.rand(PICTURES, 3, train_config.resolution, train_config.resolution))
    return dict(pixel_values=pictures, prompts=train_config.instance_prompts[:PICTURES], repeats=train_config.repeats), [], []


def main(experiment):
    folder = FOLDER + "/experiments/" + experiment
    config = None if experiment.startswith("full-finetuning/") else PeftConfig.from_pretrained(folder)
    given = run.get_train_config(folder + "/" + utils.FILE_NAME_TRAIN_PARAMS)
    given.max_steps = STEPS
    if hasattr(config, "mask_fn"):
        config.mask_fn = first_weights
    if config is not None and config.peft_type == "FROD":
        without_decomposition(sys.modules["peft.tuners.frod"])
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
