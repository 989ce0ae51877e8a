# SPDX-License-Identifier: Apache-2.0
"""An optimizer's state goes to the host between rounds and comes back, and is set to zero once."""
import torch
from torch import nn

import runner
import truth

m = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)]).cuda()
o = torch.optim.Adam(m.parameters())
runner.declare(m, o)
b = runner.Batches(lambda: torch.rand(256, 1024).cuda())


def step():
    x = b.next()
    with truth.phase("forward"):
        loss = m(x).square().mean()
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        o.step()
        o.zero_grad()
    truth.mark("step")


for _ in range(2):
    step()
for r in range(2):
    for st in o.state.values():
        for k, v in st.items():
            if torch.is_tensor(v) and v.is_cuda:
                st[k] = v.cpu()
    with truth.phase("step"):
        for st in o.state.values():
            for k, v in st.items():
                if torch.is_tensor(v) and v.dim():
                    st[k] = v.to("cuda", non_blocking=True)
    truth.mark("back")
    for _ in range(2):
        step()
for r in range(1):
    with truth.phase("step"):
        for st in o.state.values():
            for k, v in st.items():
                if torch.is_tensor(v) and v.dim():
                    st[k] = torch.zeros_like(v)
    truth.mark("reset")
    for _ in range(2):
        step()
truth.finish()
