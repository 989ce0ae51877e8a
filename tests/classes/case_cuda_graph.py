# SPDX-License-Identifier: Apache-2.0
"""Two layers as CUDA graphs: their results lie in the graphs' own pool and are used again."""
import torch

import runner
import truth

model = runner.gpt(layers=5, width=480)
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
truth.holds("inputs", "the graphs' own input", lambda: [sample])
with truth.phase("capture"):
    sample = torch.randn(4, 256, 480, device="cuda", requires_grad=True)
    for i, layer in enumerate(model.layers[:2]):
        model.layers[i] = torch.cuda.make_graphed_callables(layer, (sample,))
runner.train(model, optimizer, model.batch)
