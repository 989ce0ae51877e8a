# SPDX-License-Identifier: Apache-2.0
"""Everything in functions: no module, no optimizer class. Weights in bf16 are made with requires_grad in a dictionary
on the default device, a closure keeps master weights and moments in fp32 and steps with _foreach functions."""
import math

import torch
import torch.nn.functional as F

import runner  # noqa: F401
import truth

torch.set_default_device("cuda")
V, D, H, L, T, B = 16000, 640, 10, 4, 128, 6
scratch = {}


def init_params():
    def w(*shape):
        return torch.randn(*shape, dtype=torch.bfloat16, requires_grad=True)
    params = {"wte": w(V, D), "wpe": w(T, D)}
    for i in range(L):
        params[f"{i}.ln1"] = torch.ones(D, dtype=torch.bfloat16, requires_grad=True)
        params[f"{i}.ln2"] = torch.ones(D, dtype=torch.bfloat16, requires_grad=True)
        params[f"{i}.qkv"] = w(D, 3 * D)
        params[f"{i}.out"] = w(D, D)
        params[f"{i}.up"] = w(D, 4 * D)
        params[f"{i}.down"] = w(4 * D, D)
    return params


def norm(x, g):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * g


def forward(params, ids):
    x = params["wte"][ids] + params["wpe"][:ids.shape[1]]
    for i in range(L):
        q, k, v = (norm(x, params[f"{i}.ln1"]) @ params[f"{i}.qkv"]).chunk(3, -1)
        q, k, v = (t.view(*t.shape[:2], H, D // H).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(D // H)
        att = att.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), float("-inf")).softmax(-1)
        x = x + (att @ v).transpose(1, 2).reshape(x.shape) @ params[f"{i}.out"]
        x = x + F.gelu(norm(x, params[f"{i}.ln2"]) @ params[f"{i}.up"]) @ params[f"{i}.down"]
    return x @ params["wte"].T


def adamw(params, lr=3e-4, b1=0.9, b2=0.95, eps=1e-8, wd=0.1):
    ps = list(params.values())
    master = [p.detach().float().clone() for p in ps]
    m = [torch.zeros_like(p) for p in master]
    v = [torch.zeros_like(p) for p in master]
    t = 0

    @torch.no_grad()
    def step():
        nonlocal t
        t += 1
        grads = scratch["grads"] = [p.grad.float() for p in ps]
        torch._foreach_lerp_(m, grads, 1 - b1)
        torch._foreach_mul_(v, b2)
        torch._foreach_addcmul_(v, grads, grads, 1 - b2)
        denom = torch._foreach_sqrt(v)
        torch._foreach_div_(denom, math.sqrt(1 - b2 ** t))
        torch._foreach_add_(denom, eps)
        torch._foreach_mul_(master, 1 - lr * wd)
        torch._foreach_addcdiv_(master, m, denom, -lr / (1 - b1 ** t))
        truth.mark("inside_step")
        torch._foreach_copy_(ps, master)
        for p in ps:
            p.grad = None
        scratch.clear()
    return step, {"master": master, "m": m, "v": v}


def main(steps=3):
    params = init_params()
    step, state = adamw(params)
    truth.holds("parameters", "weights", lambda: [*params.values()])
    truth.holds("gradients", "gradients", lambda: [p.grad for p in params.values()])
    truth.holds("optimizer_state", "the closure's lists", lambda: state)
    truth.holds("gradients", "the step's copies in fp32", lambda: scratch, or_else=("optimizer_temporaries",))
    batch = {}
    truth.holds("inputs", "the batch", lambda: batch)
    for _ in range(steps):
        with truth.phase("data"):
            batch["x"], batch["y"] = torch.randint(0, V, (B, T)), torch.randint(0, V, (B, T))
        with truth.phase("forward"):
            logits = forward(params, batch["x"])
            loss = F.cross_entropy(logits.view(-1, V), batch["y"].view(-1))
        truth.mark("forward")
        with truth.phase("backward"):
            loss.backward()
        truth.mark("backward")
        with truth.phase("step"):
            step()
        truth.mark("step")


main()
truth.finish()
