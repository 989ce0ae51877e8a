# SPDX-License-Identifier: Apache-2.0
"""Thirty programs that train or generate, one by its name: cases.py NAME. `--estimate` says what static estimators make of
it instead of running it, as one line of JSON. Models are built from configurations, with random weights."""
import contextlib
import json
import sys
import time

import torch
from torch import nn

STEPS = 4


def causal(kind, **config):
    def make():
        import transformers
        common = dict(vocab_size=8192, hidden_size=512, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4,
                      intermediate_size=1536, max_position_embeddings=2048)
        gpt2 = dict(vocab_size=8192, n_embd=512, n_layer=6, n_head=8, n_positions=2048)
        cls = getattr(transformers, kind + "Config")
        return transformers.AutoModelForCausalLM.from_config(cls(**{**(gpt2 if kind == "GPT2" else common), **config}))
    return make


def encoder():
    import transformers
    return transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=8192, hidden_size=512, num_hidden_layers=6, num_attention_heads=8,
                                                               intermediate_size=2048))


def seq2seq():
    import transformers
    return transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=8192, d_model=512, num_layers=4, num_heads=8, d_ff=1024,
                                                                        decoder_start_token_id=0))


def vit():
    import transformers
    return transformers.ViTForImageClassification(transformers.ViTConfig(hidden_size=384, num_hidden_layers=8, num_attention_heads=6,
                                                                        intermediate_size=1536, num_labels=1000))


def mlp(width=2048, depth=8):
    return lambda: nn.Sequential(*[layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.GELU())], nn.Linear(width, 1000))


def cnn(width=64):
    def make():
        layers, channels = [], 3
        for i in range(5):
            layers += [nn.Conv2d(channels, width << min(i, 3), 3, padding=1), nn.BatchNorm2d(width << min(i, 3)), nn.ReLU(), nn.MaxPool2d(2)]
            channels = width << min(i, 3)
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))
    return make


def lstm():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside, self.rnn, self.out = nn.Embedding(8192, 512), nn.LSTM(512, 1024, 2, batch_first=True), nn.Linear(1024, 8192)

        def forward(self, x):
            return self.out(self.rnn(self.inside(x))[0])
    return Net()


def tokens(batch, length):
    return lambda: dict(input_ids=torch.randint(0, 8192, (batch, length), device="cuda"))


def labelled(batch, length):
    def make():
        ids = torch.randint(0, 8192, (batch, length), device="cuda")
        return dict(input_ids=ids, labels=ids)
    return make


def pictures(batch, size=224):
    return lambda: dict(x=torch.randn(batch, 3, size, size, device="cuda"))


def pixels(batch):
    return lambda: dict(pixel_values=torch.randn(batch, 3, 224, 224, device="cuda"), labels=torch.zeros(batch, dtype=torch.long, device="cuda"))


def rows(batch, width=2048):
    return lambda: dict(x=torch.randn(batch, width, device="cuda"))


ADAMW, SGD = torch.optim.AdamW, torch.optim.SGD
# name: model, batch, and what differs from AdamW in float32
CASES = {
    "gpt2": (causal("GPT2"), labelled(4, 512), {}),
    "gpt2-long": (causal("GPT2"), labelled(1, 2048), {}),
    "gpt2-eager": (causal("GPT2", attn_implementation="eager"), labelled(4, 512), {}),
    "gpt2-sgd": (causal("GPT2"), labelled(4, 512), dict(optimizer=SGD)),
    "gpt2-momentum": (causal("GPT2"), labelled(4, 512), dict(optimizer=SGD, settings=dict(lr=0.1, momentum=0.9))),
    "gpt2-bf16": (causal("GPT2"), labelled(4, 512), dict(dtype=torch.bfloat16)),
    "gpt2-autocast": (causal("GPT2"), labelled(4, 512), dict(autocast=True)),
    "gpt2-checkpoint": (causal("GPT2"), labelled(4, 512), dict(checkpoint=True)),
    "gpt2-accumulate": (causal("GPT2"), labelled(2, 512), dict(accumulate=4)),
    "gpt2-fused": (causal("GPT2"), labelled(4, 512), dict(settings=dict(fused=True))),
    "gpt2-loop": (causal("GPT2"), labelled(4, 512), dict(settings=dict(foreach=False))),
    "llama": (causal("Llama"), labelled(4, 512), {}),
    "llama-bf16": (causal("Llama"), labelled(8, 512), dict(dtype=torch.bfloat16)),
    "llama-keep-grads": (causal("Llama"), labelled(2, 512), dict(keep=True)),
    "llama-wide-vocabulary": (causal("Llama", vocab_size=65536), labelled(2, 512), {}),
    "llama-forward": (causal("Llama"), tokens(8, 512), dict(train=False)),
    "llama-forward-bf16": (causal("Llama"), tokens(16, 1024), dict(train=False, dtype=torch.bfloat16)),
    "qwen2": (causal("Qwen2"), labelled(4, 512), {}),
    "qwen3-bf16": (causal("Qwen3", head_dim=64), labelled(4, 1024), dict(dtype=torch.bfloat16)),
    "bert": (encoder, labelled(8, 256), {}),
    "bert-forward": (encoder, tokens(32, 256), dict(train=False)),
    "t5": (seq2seq, labelled(4, 256), {}),
    "vit": (vit, pixels(16), {}),
    "vit-autocast": (vit, pixels(32), dict(autocast=True)),
    "mlp": (mlp(), rows(512), {}),
    "mlp-large-batch": (mlp(), rows(16384), {}),
    "mlp-rmsprop": (mlp(), rows(512), dict(optimizer=torch.optim.RMSprop)),
    "cnn": (cnn(), pictures(8), {}),
    "cnn-forward": (cnn(), pictures(32), dict(train=False)),
    "lstm": (lstm, lambda: dict(x=torch.randint(0, 8192, (16, 128), device="cuda")), {}),
}


def call(model, batch):
    inputs = batch()
    out = model(inputs["x"]) if "x" in inputs else model(**inputs)
    if getattr(out, "loss", None) is not None:
        return out.loss
    return (out if isinstance(out, torch.Tensor) else out.logits).float().square().mean()


def prepare(name):
    make, batch, how = CASES[name]
    torch.set_default_dtype(how.get("dtype", torch.float32))
    with torch.device("cuda"):
        model = make()
    torch.set_default_dtype(torch.float32)
    if how.get("checkpoint"):
        model.gradient_checkpointing_enable()
    if not how.get("train", True):
        return model, batch, how, None
    return model, batch, how, how.get("optimizer", ADAMW)(model.parameters(), **how.get("settings", dict(lr=1e-3)))


def step(model, batch, how, optimizer):
    if how.get("dtype"):
        first, batch = batch, lambda: {k: v.to(how["dtype"]) if v.is_floating_point() else v for k, v in first().items()}
    cast = torch.autocast("cuda", torch.bfloat16) if how.get("autocast") else contextlib.nullcontext()
    if optimizer is None:
        with torch.no_grad(), cast:
            return call(model, batch)
    for _ in range(how.get("accumulate", 1)):
        with cast:
            loss = call(model, batch)
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=not how.get("keep"))
    return None


def estimate(name):
    """Bytes by each estimator; those that know no way to a figure for this program say nothing."""
    from accelerate.utils import calculate_maximum_sizes
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs as deepspeed
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker
    make, batch, how = CASES[name]
    model = make().to(how.get("dtype", torch.float32))
    parameters, trains = sum(p.numel() for p in model.parameters()), how.get("train", True)
    total, _ = calculate_maximum_sizes(model)
    said = {"accelerate": total * (4 if trains else 1)}
    if trains:
        said["16 bytes"] = 16 * parameters
        said["deepspeed"] = deepspeed(parameters, 1, 1, False, 1.0)[1]
    del model
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            program = prepare(name)
            tracker = MemTracker()
            tracker.track_external(program[0], *([program[3]] if program[3] else []))
            with tracker:
                step(*program)
                tracker.reset_mod_stats()
                step(*program)
            said["memtracker"] = tracker.get_tracker_snapshot("peak")[torch.device("cuda:0")]["Total"]
    except Exception as error:  # it does not know every program
        said["memtracker failed"] = f"{type(error).__name__}: {error}"[:200]
    return said


if __name__ == "__main__":
    if sys.argv[2:] == ["--estimate"]:
        print("ESTIMATE " + json.dumps(estimate(sys.argv[1])))
    else:
        program = prepare(sys.argv[1])
        for _ in range(STEPS):
            step(*program)
        torch.cuda.synchronize()
        print("TRUTH " + json.dumps(dict(allocated=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved())))
        time.sleep(0.3)  # Python that ends right behind a backward pass may abort (docs/reliability.md)
