# SPDX-License-Identifier: Apache-2.0
"""Segments of telephone calls are transcribed by a CTC model, with scores of every frame for an alignment afterwards."""
import random
import sys
from dataclasses import dataclass

import torch
from torch import nn

TOKENS, MELS, WIDTH, LAYERS, BATCH = 1025, 80, 256, 4, 16


class ConvBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.depthwise, self.pointwise = nn.BatchNorm1d(WIDTH), nn.Conv1d(WIDTH, WIDTH, 15, padding=7, groups=WIDTH), nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, x):
        return x + nn.functional.silu(self.pointwise(self.depthwise(self.norm(x))))


class CTCModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.subsample = nn.Sequential(nn.Conv1d(MELS, WIDTH, 5, 2, 2), nn.SiLU(), nn.Conv1d(WIDTH, WIDTH, 5, 2, 2))
        self.encoder, self.decoder = nn.Sequential(*(ConvBlock() for _ in range(LAYERS))), nn.Conv1d(WIDTH, TOKENS, 1)

    def forward(self, mel, lengths):
        logits = self.decoder(self.encoder(self.subsample(mel)))
        return logits.transpose(1, 2).log_softmax(-1), (lengths + 3) // 4


@dataclass
class Hypothesis:
    y_sequence: torch.Tensor
    length: int
    text: str = ""


def ctc_decode(predictions, length):
    tokens = predictions[:length].tolist()
    return " ".join(str(t) for t, previous in zip(tokens, [None] + tokens) if t != previous and t != TOKENS - 1)


def load_segments(count):
    for _ in range(count):
        lengths = torch.tensor([random.randrange(400, 1200) for _ in range(BATCH)])
        yield torch.rand(BATCH, MELS, int(lengths.max())), lengths


@torch.no_grad()
def transcribe_partial_audio(model, segments):
    hypotheses = []
    for mel, lengths in segments:
        logits, logits_len = model(mel.cuda(), lengths)
        greedy_predictions = logits.argmax(-1).cpu()
        for idx in range(logits.shape[0]):
            length = int(logits_len[idx])
            text = ctc_decode(greedy_predictions[idx], length)
            y_sequence = logits[idx][:length]
            if sys.argv[1] == "fixed":
                y_sequence = y_sequence.cpu()
            hypotheses.append(Hypothesis(y_sequence, length, text))
        del logits
        print(len(hypotheses), "segments", torch.cuda.memory_allocated() >> 20, "MiB")
    return hypotheses


random.seed(7)
asr_model = CTCModel().cuda().eval()
hypotheses = transcribe_partial_audio(asr_model, load_segments(30))
print(sum(h.length for h in hypotheses), "frames", torch.cuda.max_memory_allocated() >> 20, "MiB")
