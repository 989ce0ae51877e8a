# SPDX-License-Identifier: Apache-2.0
"""One weight for embedding and head; the lower half of the layers does not train."""
import torch

import runner

model = runner.gpt(tied=True, layers=6, on_device=False)
for layer in model.layers[:3]:
    layer.requires_grad_(False)
optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1, momentum=0.9)
runner.declare(model, optimizer)
runner.train(model, optimizer, model.batch, inside=model.layers[4])
