# SPDX-License-Identifier: Apache-2.0
"""The same kind of worker with record_history=False: the file has the blocks of the moment, and neither history nor stacks."""
import os
import sys
from pathlib import Path

import torch
from torch import nn


class Worker:
    def __init__(self, folder):
        self.folder = folder
        self.model = nn.ModuleList(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True) for _ in range(6)).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.replay = []

    def train(self, x):
        for layer in self.model:
            x = layer(x)
        x.square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.replay.append(x)  # features of every step, for a later phase

    def run(self, steps):
        for step in range(steps):
            try:
                self.train(torch.randn(16, 512, 512, device="cuda"))
            except torch.OutOfMemoryError:
                torch.cuda.memory._dump_snapshot(str(self.folder / f"oom_train_rank0_pid{os.getpid()}.pickle"))
                raise


Worker(Path(sys.argv[1])).run(60)
