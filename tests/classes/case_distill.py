# SPDX-License-Identifier: Apache-2.0
"""A large teacher that only infers, a small student that learns from it."""
import torch
from torch.nn import functional as F

import runner
import truth

teacher = runner.gpt(on_device=False, layers=6).eval()
student = runner.gpt(layers=2)
optimizer = torch.optim.AdamW(student.parameters())
runner.declare(teacher)
runner.declare(student, optimizer)


def loss_of(model, x):
    with torch.no_grad():
        wanted = teacher(x)
    return F.kl_div(F.log_softmax(model(x), -1), F.softmax(wanted, -1), reduction="batchmean")


runner.train(student, optimizer, student.batch, loss_of, inside=student.middle(),
             after_step=lambda: truth.mark("stepped"))
