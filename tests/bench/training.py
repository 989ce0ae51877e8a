# SPDX-License-Identifier: Apache-2.0
"""Trains a model on random data. Arguments: which one (a name of MODELS), steps, and optionally `refused` (one more
step, whose batch does not fit the device) or a file for PyTorch's own snapshot (its recorder then runs with
stacks=all). Prints milliseconds a step (the best)."""
import sys
import time

import torch


def language(model, batch, length):
    def loss(times=1):
        tokens = torch.randint(0, model.config.vocab_size, (batch * times, length), device="cuda")
        return model(input_ids=tokens, labels=tokens).loss

    return model, loss


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    return language(GPT2LMHeadModel(GPT2Config(use_cache=False)), 4, 512)  # 124M parameters


def qwen2():
    from transformers import Qwen2Config, Qwen2ForCausalLM

    shape = {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 12, "num_attention_heads": 14}
    config = Qwen2Config(num_key_value_heads=2, vocab_size=32000, use_cache=False, **shape)
    return language(Qwen2ForCausalLM(config), 2, 256)


def experts():
    from transformers import MixtralConfig, MixtralForCausalLM

    shape = {"hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 8}
    config = MixtralConfig(num_key_value_heads=4, num_local_experts=8, vocab_size=32000, use_cache=False, **shape)
    return language(MixtralForCausalLM(config), 2, 256)


def resnet50():
    import torchvision

    model = torchvision.models.resnet50()

    def loss(times=1):
        images = torch.randn(8 * times, 3, 64, 64, device="cuda")
        classes = torch.randint(0, 1000, (8 * times,), device="cuda")
        return torch.nn.functional.cross_entropy(model(images), classes)

    return model, loss


MODELS = {"gpt2": gpt2, "qwen2": qwen2, "resnet50": resnet50, "experts": experts}
TOO_MANY = 256  # times the batch


def step(loss, optimizer):
    start = time.perf_counter()
    loss().backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def is_refused(loss):
    try:
        loss(TOO_MANY).backward()
    except torch.cuda.OutOfMemoryError:
        return True
    return False


def main():
    name, steps, *snapshot = sys.argv[1:]
    refused = snapshot == ["refused"]
    if refused:
        snapshot.clear()
    if snapshot:
        torch.cuda.memory._record_memory_history(stacks="all")
    with torch.device("cuda"):
        model, loss = MODELS[name]()
    optimizer = torch.optim.AdamW(model.parameters())
    best = min(step(loss, optimizer) for _ in range(int(steps)))
    assert not refused or is_refused(loss)
    print(f"{best * 1000:.2f}")
    if snapshot:
        torch.cuda.memory._dump_snapshot(snapshot[0])


main()
