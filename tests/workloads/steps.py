# SPDX-License-Identifier: Apache-2.0
"""steps.py CASE: three steps of training (four passes of inference) in the ways that people write loops."""
import contextlib
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self, width=256, hidden=1024, out=256):
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, out)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


def batch():
    return torch.randn(64, 256, device="cuda")


def gan(fused=False):
    g, d = Net().cuda(), Net(256, 512, 1).cuda()
    g_opt, d_opt = (torch.optim.Adam(m.parameters(), fused=fused) for m in (g, d))
    for _ in range(3):
        d.zero_grad()
        d(batch()).mean().backward()
        fake = g(batch())
        (-d(fake.detach())).mean().backward()
        d_opt.step()
        g_opt.zero_grad()
        d(fake).mean().backward()
        g_opt.step()


def gan_fused():
    gan(True)


def one_after_the_other():
    m = Net().cuda()
    a, b = torch.optim.SGD([m.up.weight]), torch.optim.AdamW([m.down.weight])
    for _ in range(3):
        m(batch()).mean().backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        a.step()
        b.step()
        a.zero_grad()
        b.zero_grad()


def hooks():
    m = nn.Sequential(Net(), Net()).cuda()
    opts = {p: torch.optim.AdamW([p]) for p in m.parameters()}

    def hook(p):
        opts[p].step()
        opts[p].zero_grad()
    for p in m.parameters():
        p.register_post_accumulate_grad_hook(hook)
    for _ in range(3):
        m(batch()).mean().backward()


def by_hand():
    m = Net().cuda()
    for _ in range(3):
        m(batch()).mean().backward()
        with torch.no_grad():
            for p in m.parameters():
                p -= 0.1 * p.grad
                p.grad = None


def asked():
    """Gradients of two results, one right after the other."""
    m = Net().cuda()
    for _ in range(3):
        a, b = m(batch()).mean(), m(batch()).square().mean()
        torch.autograd.grad(a, m.parameters())
        torch.autograd.grad(b, m.parameters())


def forces():
    """A first gradient is part of the loss; the optimizer clears its own between the two, as force fields are trained."""
    m = Net().cuda()
    o = torch.optim.AdamW(m.parameters())
    for _ in range(3):
        x = batch().requires_grad_()
        force, = torch.autograd.grad(m(x).sum(), x, create_graph=True)
        loss = force.square().mean()
        o.zero_grad()
        loss.backward()
        o.step()


def accumulation():
    m = Net().cuda()
    o = torch.optim.AdamW(m.parameters(), fused=True)
    for _ in range(3):
        for _ in range(4):
            F.mse_loss(m(batch()), batch()).backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        o.zero_grad(set_to_none=False)


def closure():
    m = Net().cuda()
    o = torch.optim.AdamW(m.parameters())

    def work():
        loss = m(batch()).mean()
        o.zero_grad()
        loss.backward()
        return loss
    for _ in range(3):
        o.step(work)


def profiled():
    m = Net().cuda()
    o = torch.optim.SGD(m.parameters())
    when = torch.profiler.schedule(wait=0, warmup=1, active=2)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=when) as p:
        for _ in range(3):
            for _ in range(2):
                m(batch()).mean().backward()
                o.step()
                o.zero_grad()
            p.step()


def inference():
    m = nn.Sequential(Net(), Net()).cuda().eval()
    with torch.no_grad():
        for _ in range(4):
            m(batch()).argmax(-1)


def validated():
    """Before the first step, after the second and after the last."""
    m = Net().cuda()
    o = torch.optim.AdamW(m.parameters())

    def validate():
        with torch.inference_mode():
            for _ in range(3):
                F.mse_loss(m(batch().repeat(64, 1)), batch().repeat(64, 1)).item()
    validate()
    for i in range(3):
        F.mse_loss(m(batch()), batch()).backward()
        o.step()
        o.zero_grad()
        if i:
            validate()


def warmed_up():
    """One optimizer, called from a warm-up and then from the loop."""
    m = Net().cuda()
    o = torch.optim.AdamW(m.parameters())
    for _ in range(2):
        m(batch()).mean().backward()
        o.step()
        o.zero_grad()
    for _ in range(4):
        m(batch()).mean().backward()
        o.step()
        o.zero_grad()


def two_lines():
    """One optimizer, called from two lines by turns."""
    m = Net().cuda()
    o = torch.optim.AdamW(m.parameters())
    for i in range(5):
        m(batch()).mean().backward()
        if i % 2:
            torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            o.step()
        else:
            o.step()
        o.zero_grad()


def second_stage():
    """One optimizer for the head, later one for all of it; what accumulated at the end takes a step of its own."""
    m = Net().cuda()
    head = torch.optim.AdamW(m.down.parameters())
    for _ in range(2):
        m(batch()).mean().backward()
        head.step()
        head.zero_grad()
    whole = torch.optim.AdamW(m.parameters())
    for _ in range(3):
        m(batch()).mean().backward()
        whole.step()
        whole.zero_grad()
    m(batch()).mean().backward()
    whole.step()


def paused(when):
    """Events are recorded without stacks."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
    import gpumemtrace
    return gpumemtrace.paused() if when else contextlib.nullcontext()


def paused_often(optimizer=torch.optim.AdamW):
    """The first step among others; its gradients come twice."""
    m = Net().cuda()
    o = optimizer(m.parameters())
    for i in range(33):
        with paused(i % 8 == 0):
            for _ in range(1 if i else 2):
                m(batch()).mean().backward()
            o.step()
            o.zero_grad()


def paused_stateless():
    """One whose steps make no state."""
    paused_often(torch.optim.Adagrad)


def paused_gan():
    g, d = Net().cuda(), Net(256, 1024, 256).cuda()
    g_opt, d_opt = (torch.optim.AdamW(m.parameters()) for m in (g, d))
    for i in range(8):
        with paused(i in (0, 1, 5)):
            d(batch()).mean().backward()
            d_opt.step()
            d_opt.zero_grad()
            g(batch()).mean().backward()
            g_opt.step()
            g_opt.zero_grad()


def closure_batch(when=()):
    """The closure clears the gradients first and makes its batch then."""
    m = Net().cuda()
    o = torch.optim.AdamW(m.parameters())

    def work():
        o.zero_grad()
        loss = m(batch()).mean()
        loss.backward()
        return loss
    for i in range(6):
        with paused(i in when):
            o.step(work)


def paused_closure():
    closure_batch((0, 1, 3))


def paused_inference():
    m = Net().cuda().eval()
    with torch.no_grad():
        for i in range(8):
            with paused(i in (3, 4)):
                m(batch()).argmax(-1)


globals()[sys.argv[1]]()
