# SPDX-License-Identifier: Apache-2.0
"""A speech server: every request names a voice, and the first request of a voice prepares it from a recording."""
import contextlib
import sys

import torch
from torch import nn

GUARD = torch.inference_mode if sys.argv[1] == "fixed" else contextlib.nullcontext
DEVICE = "cuda"


class VoiceEncoder(nn.Module):
    def __init__(self, mels=80, width=512, layers=6):
        super().__init__()
        self.stem = nn.Conv1d(mels, width, 3, padding=1)
        block = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, layers)
        self.project = nn.Linear(width, 256)

    def forward(self, mel):
        h = self.blocks(self.stem(mel).transpose(1, 2))
        return self.project(h.mean(1)), h[:, :64]


class Speech(nn.Module):
    def __init__(self, vocabulary=2048, width=512):
        super().__init__()
        self.voice = VoiceEncoder(width=width)
        self.tokens = nn.Embedding(vocabulary, width)
        self.speaker = nn.Linear(256, width)
        block = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
        self.decoder = nn.TransformerEncoder(block, 4)
        self.head = nn.Linear(width, vocabulary)
        self.prepared = {}

    def prepare(self, name, mel):
        if name not in self.prepared:
            embedding, prompt = self.voice(mel)
            self.prepared[name] = {"embedding": embedding, "prompt": prompt}
        return self.prepared[name]

    @torch.no_grad()
    def decode(self, text, voice, steps):
        for _ in range(steps):
            h = torch.cat([voice["prompt"], self.tokens(text)], 1) + self.speaker(voice["embedding"])[:, None]
            text = torch.cat([text, self.head(self.decoder(h))[:, -1:].argmax(-1)], 1)
        return text

    def generate(self, name, mel, text, steps=12):
        return self.decode(text, self.prepare(name, mel), steps)


model = Speech().to(DEVICE).eval()
for request in range(24):
    mel = torch.randn(1, 80, 1400, device=DEVICE)
    text = torch.randint(0, 2048, (1, 40), device=DEVICE)
    with GUARD():
        codes = model.generate(f"voice{request}", mel, text)
    print(request, codes.shape, torch.cuda.memory_allocated() >> 20, "MiB")
