# SPDX-License-Identifier: Apache-2.0
"""optimum.py MODEL: what optimum-benchmark's test of its inference scenario does on a card, in its order: load, one pass to warm up, passes
that are timed, one whose memory is measured. Batch 2, 16 words, weights as they are made. Its trackers need packages that measure energy."""
import sys

import torch

PASSES = 20


def memory(step):
    for kind in ("reserved", "allocated"):
        print(f"{step} {kind}: {getattr(torch.cuda, f'max_memory_{kind}')() / 1e6:.6f} MB", flush=True)


def bert():
    """Made on the card, as PyTorchBackend.load_transformers_model_with_no_weights does."""
    sys.modules["torchao"] = None  # older in this environment than transformers asks for
    from accelerate import init_on_device
    from transformers import AutoModelForMaskedLM, BertConfig
    with init_on_device(device=torch.device("cuda"), include_buffers=True):
        model = AutoModelForMaskedLM.from_config(BertConfig())
    return model.eval(), {name: torch.randint(2, (2, 16)) for name in ("input_ids", "attention_mask", "token_type_ids")}


def resnet(name):
    """PyTorchBackend.load_timm_model"""
    import timm
    return timm.create_model(name.split("/")[1], pretrained=False).to("cuda").eval(), {"x": torch.rand(2, 3, 224, 224)}


def main(name):
    torch.cuda.reset_peak_memory_stats()
    model, inputs = bert() if "bert" in name else resnet(name)
    memory("load")
    inputs = {key: value.to("cuda") for key, value in inputs.items()}
    with torch.inference_mode():
        for _ in range(1 + PASSES):
            model(**inputs)
        torch.cuda.reset_peak_memory_stats()
        model(**inputs)
    memory("forward")


if __name__ == "__main__":
    main(sys.argv[1])
