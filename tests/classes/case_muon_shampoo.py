# SPDX-License-Identifier: Apache-2.0
"""Optimizers of the newer kind: orthogonalised momentum for matrices, preconditioners for some, averaging without a
schedule for the rest; functions outside of the classes do the mathematics."""
import torch

import runner
import truth


def newton_schulz(g, steps=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.bfloat16()
    x = x / (x.norm() + 1e-7)
    if tall := x.size(0) > x.size(1):
        x = x.T
    for _ in range(steps):
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for i, p in enumerate(group["params"]):
                g = p.grad
                state = self.state[p]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(g)
                buf = state["momentum_buffer"]
                buf.lerp_(g, 1 - group["momentum"])
                update = newton_schulz(g.lerp_(buf, group["momentum"]))
                if i == 2:
                    truth.mark("inside_step")
                p.add_(update.type_as(p), alpha=-group["lr"])


class Shampoo(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, dict(lr=lr))

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    for d, n in enumerate(grad.size()):
                        state[f"precond_{d}"] = 1e-4 * torch.eye(n, out=grad.new(n, n))
                        state[f"inv_{d}"] = grad.new(n, n).zero_()
                for d in range(grad.ndim):
                    precond, inv = state[f"precond_{d}"], state[f"inv_{d}"]
                    g = grad.transpose(0, d).reshape(grad.size(d), -1)
                    precond.add_(g @ g.t())
                    inv.copy_(torch.linalg.cholesky_ex(precond)[0])
                    grad = (inv @ g).view_as(grad.transpose(0, d)).transpose(0, d).contiguous()
                state["step"] += 1
                p.data.add_(grad, alpha=-group["lr"])


class ScheduleFree(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, dict(lr=lr, k=0))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            group["k"] += 1
            active = [p for p in group["params"] if p.grad is not None]
            for p in active:
                if "z" not in self.state[p]:
                    self.state[p]["z"] = torch.clone(p, memory_format=torch.preserve_format)
                    self.state[p]["exp_avg_sq"] = torch.zeros_like(p)
            y, grads, squares, z = zip(*[(p.data, p.grad, self.state[p]["exp_avg_sq"], self.state[p]["z"]) for p in active])
            torch._foreach_mul_(squares, 0.999)
            torch._foreach_addcmul_(squares, grads, grads, value=0.001)
            denom = torch._foreach_sqrt(squares)
            torch._foreach_add_(denom, 1e-8)
            torch._foreach_div_(grads, denom)
            torch._foreach_lerp_(y, z, weight=1 / group["k"])
            torch._foreach_sub_(z, torch._foreach_mul(grads, group["lr"]))


model = runner.gpt(on_device=False, layers=3, vocabulary=6000)
matrices = [p for layer in model.layers[1:] for p in layer.parameters() if p.ndim == 2]
first = [p for p in model.layers[0].parameters() if p.ndim == 2]
others = [p for p in model.parameters() if not any(p is q for q in matrices + first)]
optimizers = [Muon(matrices), Shampoo(first), ScheduleFree(others)]
truth.model(model)
for o in optimizers:
    truth.optimizer(o)
runner.mark_inside_backward(model.middle())
batches = runner.Batches(model.batch)
for _ in range(3):
    x = batches.next()
    with truth.phase("forward"):
        loss = runner.language_loss(model, x)
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        for o in optimizers:
            o.step()
    truth.mark("step")
    model.zero_grad(set_to_none=True)
truth.finish()
