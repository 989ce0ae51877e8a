# SPDX-License-Identifier: Apache-2.0
"""A moving average as a copy of the model, and another as a list of clones."""
import torch

import runner
import truth

model = runner.gpt()
optimizer = torch.optim.AdamW(model.parameters())
average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
shadow = [p.detach().clone() for p in model.parameters()]
runner.declare(model, optimizer)
# Weights that no graph has seen: whether a copy belongs to the model or to the optimizer is a matter of intent.
truth.holds("parameters", "averaged model", lambda: list(average.parameters()), or_else=["optimizer_state"])
truth.holds("buffers", "buffers of the averaged model", lambda: list(average.buffers()))
truth.holds("optimizer_state", "moving average", lambda: shadow, or_else=["parameters"])


@torch.no_grad()
def average_now():
    average.update_parameters(model)
    for s, p in zip(shadow, model.parameters()):
        s.lerp_(p, 0.01)


runner.train(model, optimizer, model.batch, inside=model.middle(), after_step=average_now)
