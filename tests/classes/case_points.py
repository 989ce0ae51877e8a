# SPDX-License-Identifier: Apache-2.0
"""Points that are split and pruned as they are trained: parameters in a dictionary are replaced by larger ones together
with the optimizer's state; a field of two small networks; one renderer of one's own."""
import torch
from torch import nn

import runner
import truth

N = 400000
device = "cuda"
params = nn.ParameterDict({"means": nn.Parameter(torch.rand(N, 3)), "scales": nn.Parameter(torch.rand(N, 3)),
                           "quats": nn.Parameter(torch.rand(N, 4)), "colors": nn.Parameter(torch.rand(N, 16, 3))}).to(device)
optimizers = {k: torch.optim.Adam([{"params": [v], "name": k}], lr=1e-3, eps=1e-15) for k, v in params.items()}
truth.holds("parameters", "points", lambda: [*params.values()])
truth.holds("gradients", "their gradients", lambda: [p.grad for p in params.values()])
truth.holds("optimizer_state", "their state", lambda: [list(o.state.values()) for o in optimizers.values()])
field = nn.Sequential(nn.Linear(3 + 48, 64), nn.ReLU(), nn.Linear(64, 3)).to(device)
field_optimizer = torch.optim.Adam(field.parameters())
runner.declare(field, field_optimizer)
views = runner.Batches(lambda: {"pose": torch.eye(4, device=device), "pixels": torch.rand(1, 600, 600, 3).to(device)})


def grow(mask_size):
    chosen = torch.arange(mask_size, device=device)
    for name, o in optimizers.items():
        old = params[name]
        state = o.state.pop(old)
        new = nn.Parameter(torch.cat([old, old[chosen].detach()]))
        for key in ("exp_avg", "exp_avg_sq"):
            state[key] = torch.cat([state[key], torch.zeros((mask_size, *old.shape[1:]), device=device)])
        o.param_groups[0]["params"] = [new]
        o.state[new] = state
        params[name] = new


for step in range(4):
    view = views.next()
    with truth.phase("forward"):
        p = params["means"] @ view["pose"][:3, :3]
        opacity = torch.sigmoid(params["scales"]).prod(-1, keepdim=True)
        q = nn.functional.normalize(params["quats"], dim=-1)
        color = torch.cat([p, params["colors"].flatten(1)], 1)
        shaded = field(color[:120000]) * opacity[:120000] * q[:120000, :3]
        loss = (shaded.mean(0) - view["pixels"].mean((0, 1, 2))).abs().sum() + 0.01 * (p.square().mean() + q.mean())
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        for o in (*optimizers.values(), field_optimizer):
            o.step()
            o.zero_grad(set_to_none=True)
    truth.mark("step")
    if step in (1, 2):
        loss = p = opacity = q = color = shaded = None  # a graph keeps its leaves alive
        with truth.phase("step"), torch.no_grad():
            grow(50000)
        truth.mark("grown")
truth.finish()
