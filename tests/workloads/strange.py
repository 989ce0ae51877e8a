# SPDX-License-Identifier: Apache-2.0
"""Tensors that have no memory of their own, or not as others have: autograd over each of them."""
import torch
from torch import nn
from torch.func import functional_call, grad, vmap


def transforms():
    model = nn.Linear(8, 3).cuda()
    parameters = dict(model.named_parameters())

    def loss(p, x):
        return functional_call(model, p, (x,)).square().sum()
    grads = vmap(grad(loss), in_dims=(None, 0))(parameters, torch.randn(5, 8, device="cuda"))
    print("vmap", sorted((k, tuple(v.shape)) for k, v in grads.items()))
    x = torch.randn(4, device="cuda", requires_grad=True)
    print("hessian", tuple(torch.func.hessian(lambda y: (y * y * y).sum())(x).shape))


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        model = nn.Linear(8, 3, device="cuda")
        model(torch.randn(2, 8, device="cuda")).sum().backward()
        print("fake", tuple(model.weight.grad.shape), model.weight.grad.device)


def meta():
    model = nn.Linear(8, 3, device="meta")
    model(torch.randn(2, 8, device="meta")).sum().backward()
    print("meta", model.weight.grad.device)


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device,
                                                   requires_grad=inner.requires_grad)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def unwrap(t):
            return t.inner if isinstance(t, Wrapper) else t
        out = func(*[unwrap(a) for a in args], **(kwargs or {}))
        return Wrapper(out) if isinstance(out, torch.Tensor) else out


def wrapped():
    x = Wrapper(torch.randn(3, device="cuda")).requires_grad_()
    (x * x).sum().backward()
    print("wrapped", type(x.grad).__name__)


def sparse():
    table = nn.Embedding(9, 4, sparse=True).cuda()
    table(torch.tensor([1, 2], device="cuda")).sum().backward()
    print("sparse", table.weight.grad.layout)


def lazy():
    x = torch.randn(64, device="cuda", requires_grad=True)
    y = torch._lazy_clone(x) if hasattr(torch, "_lazy_clone") else x.clone()
    (y * y).sum().backward()
    print("lazy", x.grad.shape)


def views():
    x = torch.randn(6, 5, device="cuda", requires_grad=True)
    part = x[2:, 1:3]
    (part * part.transpose(0, 1).reshape(4, 2)).sum().backward()
    half = torch.randn(7, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    (half[3:] * half[:4]).sum().backward()
    print("views", x.grad.stride(), half.grad.dtype)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, None, x * 2)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        x, _, y = ctx.saved_tensors
        return g * 2


def functions():
    x = torch.randn(10, device="cuda", requires_grad=True)
    Twice.apply(x).sum().backward()
    with torch.autograd.graph.save_on_cpu():
        (x * x).sum().backward()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        (x * x).sum().backward()
    try:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: 1 // 0, lambda t: t):
            (x * x).sum()
    except ZeroDivisionError as e:
        print("pack hook raised", e)

    def bad(g):
        raise ValueError("in backward")
    y = x * 3
    y.register_hook(bad)
    try:
        y.sum().backward()
    except ValueError as e:
        print("raised", e)
    z = (x * x).sum()
    z.backward(retain_graph=True)
    z.backward()
    print("functions", x.grad.shape)


def main():
    for case in (transforms, fake, meta, wrapped, sparse, lazy, views, functions):
        case()


if __name__ == "__main__":
    main()
