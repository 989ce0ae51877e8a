# SPDX-License-Identifier: Apache-2.0
"""Batches of a DataLoader with a worker and pinned memory, copied without waiting; results copied back into pinned memory."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Lengths(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, i):
        return torch.full((40 + 7 * (i // 8), 256), float(i)), i % 10


def main():
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    kept = []
    for epoch in range(2):
        for x, y in DataLoader(Lengths(), batch_size=8, num_workers=1, pin_memory=True):
            x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)
            out = model(x).mean(1)
            nn.functional.cross_entropy(out, y).backward()
            optimizer.step()
            optimizer.zero_grad()
            kept.append(torch.empty(out.shape, pin_memory=True).copy_(out.detach(), non_blocking=True))


if __name__ == "__main__":
    main()
