# SPDX-License-Identifier: Apache-2.0
"""Who speaks when in a long meeting: embeddings of segments in several lengths, whose similarities are fused and clustered."""
import sys

import torch
from torch import nn

MELS, WIDTH, EMBEDDING, BATCH, SECONDS = 80, 256, 192, 64, 1250
SCALES = ((1.5, 0.75), (1.25, 0.625), (1.0, 0.5), (0.75, 0.375), (0.5, 0.25))  # window and shift in seconds
WEIGHTS = torch.ones(1, len(SCALES)) / len(SCALES)


class SpeakerNet(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Conv1d(MELS, WIDTH, 3, padding=1), nn.BatchNorm1d(WIDTH), nn.ReLU()]
        for _ in range(3):
            layers += [nn.Conv1d(WIDTH, WIDTH, 11, padding=5, groups=WIDTH), nn.Conv1d(WIDTH, WIDTH, 1), nn.BatchNorm1d(WIDTH), nn.ReLU()]
        self.encoder, self.decoder = nn.Sequential(*layers), nn.Linear(2 * WIDTH, EMBEDDING)

    def forward(self, mel):
        x = self.encoder(mel)
        return self.decoder(torch.cat([x.mean(-1), x.std(-1)], -1))


@torch.no_grad()
def extract_embeddings(model, starts, window):
    batches = (torch.randn(len(s), MELS, int(100 * window)) for s in starts.split(BATCH))
    return torch.cat([model(mel.cuda()).cpu() for mel in batches])


def get_argmin_mat(timestamps):
    anchors = [t.mean(1) for t in timestamps]
    return [(anchors[-1][:, None] - a[None]).abs().argmin(1) for a in anchors]


def cos_affinity(emb):
    emb = emb / (emb.norm(dim=1, keepdim=True) + 3.5e-4)
    similarity = emb @ emb.t()
    similarity.fill_diagonal_(1)
    low, high = similarity.min(), similarity.max()
    return (similarity - low) / (high - low)


def repeated_affinity(emb, mapping, device):
    score = cos_affinity(emb.half().to(device))
    repeats = torch.bincount(mapping, minlength=len(score)).to(device)
    return score.repeat_interleave(repeats, dim=0).repeat_interleave(repeats, dim=1)


def multiscale_affinity(weights, embeddings, timestamps, device):
    weights, mappings = weights.to(device), get_argmin_mat(timestamps)
    if sys.argv[1] == "fixed":
        fused = torch.zeros(len(timestamps[-1]), len(timestamps[-1]), device=device)
        for scale, (emb, mapping) in enumerate(zip(embeddings, mappings)):
            fused += weights[0, scale] * repeated_affinity(emb, mapping, device)
        return fused
    repeated = []
    for emb, mapping in zip(embeddings, mappings):
        repeated.append(repeated_affinity(emb, mapping, device))
    stacked = torch.stack(repeated).float()
    return torch.matmul(stacked.permute(2, 1, 0), weights.t()).squeeze(2).t()


def spectral_embedding(affinity, speakers, iterations=20):
    nearest = affinity.topk(30, dim=1)[1]
    graph = torch.zeros_like(affinity).scatter_(1, nearest, 1.0)
    graph = (graph + graph.t()) / 2
    degree = graph.sum(1).clamp(min=1).rsqrt()
    vectors = torch.randn(len(affinity), speakers, device=affinity.device)
    for _ in range(iterations):
        vectors = degree[:, None] * (graph @ (degree[:, None] * vectors))
        vectors = vectors / vectors.norm(dim=0, keepdim=True)
    return vectors


model, embeddings, timestamps = SpeakerNet().cuda().eval(), [], []
for window, shift in SCALES:
    starts = torch.arange(0, SECONDS - window, shift)
    embeddings.append(extract_embeddings(model, starts, window))
    timestamps.append(torch.stack([starts, starts + window], 1))
    print(window, "s:", len(starts), "segments", torch.cuda.max_memory_allocated() >> 20, "MiB")
with torch.no_grad():
    affinity = multiscale_affinity(WEIGHTS, embeddings, timestamps, torch.device("cuda"))
    labels = spectral_embedding(affinity, speakers=4).abs().argmax(1).cpu()
print(len(labels), "labels", torch.cuda.max_memory_allocated() >> 20, "MiB")
