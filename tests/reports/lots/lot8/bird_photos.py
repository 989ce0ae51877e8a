# SPDX-License-Identifier: Apache-2.0
"""A classifier of birds is trained with a loader that copies the next batch to the device, and normalizes it there, on a stream of its own."""
import sys
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES, SIZE, BATCH, EPOCHS = 200, 160, 96, 10


class Birds(Dataset):
    def __len__(self):
        return 4 * BATCH

    def __getitem__(self, index):
        return torch.full((3, SIZE, SIZE), index % 256, dtype=torch.uint8), index % CLASSES


class PrefetchLoader:
    def __init__(self, loader, device, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)):
        self.loader, self.device = loader, device
        self.mean = torch.tensor([255 * x for x in mean], device=device).view(1, 3, 1, 1)
        self.std = torch.tensor([255 * x for x in std], device=device).view(1, 3, 1, 1)
        self.stream = torch.cuda.Stream(device) if sys.argv[1] == "fixed" else None

    def __iter__(self):
        first = True
        stream = self.stream or torch.cuda.Stream(self.device)
        stream_context = partial(torch.cuda.stream, stream=stream)
        for next_input, next_target in self.loader:
            stream.wait_stream(torch.cuda.current_stream(self.device))
            with stream_context():
                next_input = next_input.to(self.device, non_blocking=True)
                next_target = next_target.to(self.device, non_blocking=True)
                next_input = next_input.float().sub_(self.mean).div_(self.std)
            if not first:
                yield input, target
            first = False
            torch.cuda.current_stream(self.device).wait_stream(stream)
            input, target = next_input, next_target
        yield input, target


class Bottleneck(nn.Module):
    def __init__(self, n_in, n_out, stride):
        super().__init__()
        mid = n_out // 4
        self.convs = nn.Sequential(nn.Conv2d(n_in, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(), nn.Conv2d(mid, mid, 3, stride, 1, bias=False),
                                   nn.BatchNorm2d(mid), nn.ReLU(), nn.Conv2d(mid, n_out, 1, bias=False), nn.BatchNorm2d(n_out))
        self.shortcut = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x):
        return F.relu(self.convs(x) + self.shortcut(x))


device = torch.device("cuda")
model = nn.Sequential(nn.Conv2d(3, 32, 7, 4, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU(), Bottleneck(32, 128, 1), Bottleneck(128, 256, 2),
                      Bottleneck(256, 512, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
loader = PrefetchLoader(DataLoader(Birds(), BATCH, shuffle=True, drop_last=True), device)
for epoch in range(EPOCHS):
    for images, labels in loader:
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), torch.cuda.max_memory_allocated() >> 20, "MiB used,", torch.cuda.memory_reserved() >> 20, "MiB reserved")
