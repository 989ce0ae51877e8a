# SPDX-License-Identifier: Apache-2.0
"""published.py TRUTH CASE [ARGUMENT...] : the examples of published articles and papers on training
memory. What PyTorch itself says is written to TRUTH (with %r for the rank)."""
import contextlib
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

import truth

CUDA = "cuda"


class Kept:
    """The bytes that autograd saves in a forward pass: of whole storages, without those of parameters."""

    def __init__(self, model):
        self.own = {p.untyped_storage().data_ptr() for p in model.parameters()}
        self.bytes = {}

    def pack(self, tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.own and tensor.is_cuda:
            self.bytes[storage.data_ptr()] = storage.nbytes()
        return tensor

    def watch(self, step):
        """In the first step only: the hooks are not part of what is measured."""
        if step:
            return contextlib.nullcontext()
        return torch.autograd.graph.saved_tensors_hooks(self.pack, lambda tensor: tensor)

    def of(self, model):
        return {"parameters": sum(p.numel() for p in model.parameters()),
                "trained": sum(p.numel() for p in model.parameters() if p.requires_grad), "kept": sum(self.bytes.values())}


def teaching(grad):
    """A linear layer in a loop, with the names `inputs` and `outputs` used again."""
    model = nn.Linear(10_000, 50_000, device=CUDA)
    truth.mark("model")
    with torch.set_grad_enabled(grad == "grad"):
        for i in range(3):
            inputs = torch.randn(5_000, 10_000, device=CUDA)
            truth.mark("inputs", address=inputs.data_ptr())
            outputs = model(inputs)
            truth.mark("outputs", address=outputs.data_ptr())
    truth.mark("done")
    assert outputs.requires_grad == (grad == "grad")


class Block(nn.Module):
    """The transformer block whose activations the formulas count: dropout everywhere, GELU, 4 d wide."""

    def __init__(self, width, heads, flash):
        super().__init__()
        self.heads, self.flash = heads, flash
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, q, k, v):
        if self.flash:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = q @ k.transpose(-1, -2)
        return F.dropout(torch.softmax(scores, -1), 0.1) @ v

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = self.attend(q, k, v).transpose(1, 2).reshape(b, s, d)
        x = x + F.dropout(self.proj(a), 0.1)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), 0.1)


class Blocks(nn.Module):
    def __init__(self, layers, width, heads, vocabulary, flash, checkpoint):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Block(width, heads, flash) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.checkpoint = checkpoint

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint
        h = self.tokens(x)
        for layer in self.layers:
            h = checkpoint(layer, h, use_reentrant=False) if self.checkpoint else layer(h)
        return self.head(self.norm(h))


class MixedAdam(torch.optim.Optimizer):
    """16-bit parameters and gradients, a 32-bit copy and two 32-bit moments: 16 bytes a parameter."""

    def __init__(self, params):
        super().__init__(params, {})

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state["master"] = p.detach().float()
                state["m"], state["v"] = torch.zeros_like(state["master"]), torch.zeros_like(state["master"])
            grad = p.grad.float()
            state["m"].lerp_(grad, 0.1)
            state["v"].lerp_(grad.square_(), 0.001)
            state["master"].sub_(state["m"])
            p.copy_(state["master"])


def train(model, optimizer, loss_of_batch, steps, flatten=False):
    kept = Kept(model)
    for i in range(steps):
        with kept.watch(i):
            loss = loss_of_batch()
        truth.mark("forward")
        loss.backward()
        truth.mark("backward")
        del loss
        if flatten:
            flat_norm(model)
        optimizer.step()
        truth.mark("updated")
        optimizer.zero_grad()
        truth.mark("step")
    return kept.of(model)


def flat_norm(model):
    """All gradients in one flat 32-bit buffer."""
    gradients = [p.grad for p in model.parameters()]
    flat, at = torch.empty(sum(g.numel() for g in gradients), device=CUDA), 0
    for g in gradients:
        flat[at:at + g.numel()].copy_(g.flatten())
        at += g.numel()
    return flat.norm()


def transformer(layers, width, heads, batch, sequence, vocabulary, how):
    """how: some of flash, checkpoint, half (16-bit with MixedAdam), flatten, joined by commas."""
    layers, width, heads, batch, sequence, vocabulary = map(int, (layers, width, heads, batch, sequence, vocabulary))
    with torch.device(CUDA):
        model = Blocks(layers, width, heads, vocabulary, "flash" in how, "checkpoint" in how)
    if "half" in how:
        model.half()
    optimizer = MixedAdam(model.parameters()) if "half" in how else torch.optim.AdamW(model.parameters())

    def loss():
        x = torch.randint(0, vocabulary, (batch, sequence), device=CUDA)
        return F.cross_entropy(model(x).flatten(0, 1), x.flatten())
    return train(model, optimizer, loss, 2, "flatten" in how)


def qwen(batch, sequence):
    from transformers import Qwen2Config, Qwen2ForCausalLM
    config = Qwen2Config(vocab_size=151936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28,
                         num_attention_heads=12, num_key_value_heads=2, tie_word_embeddings=True, use_cache=False)
    with torch.device(CUDA):
        model = Qwen2ForCausalLM(config)

    def loss():
        x = torch.randint(0, 151936, (int(batch), int(sequence)), device=CUDA)
        return model(input_ids=x, labels=x).loss
    return train(model, torch.optim.AdamW(model.parameters()), loss, 3)


def lora(adapt):
    """GPT-2 with adapters for its attention ("adapters"), or trained whole ("whole")."""
    from transformers import GPT2Config, GPT2LMHeadModel
    with torch.device(CUDA):
        model = GPT2LMHeadModel(GPT2Config(use_cache=False))
    if adapt == "adapters":
        from peft import LoraConfig, get_peft_model
        model = get_peft_model(model, LoraConfig(r=8, target_modules=["c_attn"], task_type="CAUSAL_LM")).to(CUDA)

    def loss():
        x = torch.randint(0, 50257, (4, 256), device=CUDA)
        return model(input_ids=x, labels=x).loss
    return train(model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad]), loss, 2)


def convolutions():
    from torchvision.models import resnet18
    model = resnet18().to(CUDA)

    def loss():
        return F.cross_entropy(model(torch.randn(16, 3, 224, 224, device=CUDA)), torch.zeros(16, dtype=torch.long, device=CUDA))
    return train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), loss, 3)


def sharded(layers, width):
    """FSDP: every rank holds its part of parameters, gradients and state."""
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    model = Blocks(int(layers), int(width), 16, 1024, True, False).to(CUDA)
    whole = sum(p.numel() for p in model.parameters())
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        x = torch.randint(0, 1024, (4, 128), device=CUDA)
        loss = F.cross_entropy(model(x).flatten(0, 1), x.flatten())
        truth.mark("forward", [rank])
        loss.backward()
        truth.mark("backward", [rank])
        del loss
        optimizer.step()
        truth.mark("updated", [rank])
        optimizer.zero_grad()
    truth.mark("end", [rank])
    dist.destroy_process_group()
    return {"rank": rank, "parameters": whole, "local": sum(p.to_local().numel() for p in model.parameters())}


def fragmented():
    """Blocks that lie three to a segment; two of three go, and no segment can be given back."""
    kept, size = [], 6 * 2**20
    try:
        while True:
            kept.append(torch.empty(size, dtype=torch.uint8, device=CUDA))
    except torch.OutOfMemoryError:
        pass
    by_segment = {}
    for t in kept:
        segment = next(s["address"] for s in torch.cuda.memory_snapshot()
                       if s["address"] <= t.data_ptr() < s["address"] + s["total_size"])
        by_segment.setdefault(segment, t)
    kept = list(by_segment.values())
    del by_segment, t
    held = torch.cuda.memory_allocated()
    try:
        torch.empty(400 * 2**20, dtype=torch.uint8, device=CUDA)
    except torch.OutOfMemoryError:
        return held
    raise SystemExit("it did not fail")


def main():
    case, *rest = sys.argv[2:]
    said = globals()[case](*rest)
    if "RANK" not in os.environ:
        truth.mark("end")
    truth.write(sys.argv[1].replace("%r", os.environ.get("RANK", "")), said=said)


if __name__ == "__main__":
    main()
