# SPDX-License-Identifier: Apache-2.0
"""A multimodal model under a profiler of steps: torch.profiler with memory and stacks, one trace file a rank."""
import sys

import torch
import torch.nn.functional as F
from torch import nn, profiler as torch_profiler


class StepProfiler:
    def __init__(self, directory, start_step=1, end_step=3):
        self.directory, self.start_step, self.end_step = directory, start_step, end_step
        self.prof = torch_profiler.profile(
            activities=[torch_profiler.ProfilerActivity.CPU],
            schedule=torch_profiler.schedule(wait=start_step, warmup=1, active=end_step - start_step),
            record_shapes=True, profile_memory=True, with_stack=True)

    def save(self):
        self.prof.stop()
        self.prof.export_chrome_trace(f"{self.directory}/prof_start_{self.start_step}_end_{self.end_step}_rank_0.json")


class Vision(nn.Module):
    def __init__(self, width=256, layers=4):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 14, 14)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True) for _ in range(layers))

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return x


class Multimodal(nn.Module):
    def __init__(self, width=256, vocabulary=16000):
        super().__init__()
        self.vision, self.embed = Vision(width), nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True) for _ in range(2))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, images, ids):
        pictures = self.vision(images.flatten(0, 1)).unflatten(0, images.shape[:2]).mean(2)
        x = torch.cat([pictures, self.embed(ids)], 1)
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, pictures.shape[1]:])


model = Multimodal().cuda()
optimizer = torch.optim.AdamW(model.parameters())
profiler = StepProfiler(sys.argv[1])
profiler.prof.start()
for step in range(5):
    images, ids = torch.rand(4, 8, 3, 224, 224).cuda(), torch.randint(0, 16000, (4, 96)).cuda()
    F.cross_entropy(model(images, ids).flatten(0, 1), ids.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == profiler.end_step:
        profiler.save()
    elif step < profiler.end_step:
        profiler.prof.step()
