# SPDX-License-Identifier: Apache-2.0
"""A loader puts the weights of two models onto the device, one by one: of the policy only the last layers are trained, the reference is
frozen, and converted once it is there. Sizes of frozen weights are those of no gradient."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

import truth

WORDS, WIDTH, LAYERS = 6000, 768, 6


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, t):
        x = self.words(t)
        for layer in self.layers:
            x = x + F.gelu(layer(x))
        return self.head(x)


def load(model, saved, trained=()):
    for name, tensor in saved.items():
        *path, last = name.split(".")
        module = model.get_submodule(".".join(path))
        module._parameters[last] = nn.Parameter(tensor.to("cuda"), requires_grad=name.startswith(tuple(trained)) if trained else False)
    return model


saved = Net().state_dict()
policy = load(copy.deepcopy(Net().to("meta")), saved, ("layers.4", "layers.5"))
reference = load(copy.deepcopy(Net().to("meta")), saved)
trained = [p for p in policy.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained)
truth.holds("parameters", "weights", lambda: [*policy.parameters(), *reference.parameters()])
truth.holds("gradients", "gradients", lambda: [p.grad for p in trained])
truth.holds("optimizer_state", "AdamW", lambda: [t for s in optimizer.state.values() for t in s.values() if t.is_cuda])
with truth.phase("setup"):
    truth.mark("loaded")
    for module in reference.modules():
        for name, p in module._parameters.items():
            module._parameters[name] = None if p is None else nn.Parameter(p.data.to(torch.bfloat16), requires_grad=False)
batch, wanted = [], []
truth.holds("inputs", "tokens", lambda: batch)
truth.holds("inputs", "what the reference says", lambda: wanted, ("forward_temporaries",))
for i in range(4):
    batch[:] = [torch.randint(0, WORDS, (4, 64), device="cuda")]
    with truth.phase("forward"):
        with torch.no_grad():
            wanted[:] = [reference(batch[0]).float().log_softmax(-1)]
        loss = F.kl_div(policy(batch[0]).log_softmax(-1), wanted[0], log_target=True, reduction="batchmean")
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
        optimizer.zero_grad()
    truth.mark("step")
truth.finish()
