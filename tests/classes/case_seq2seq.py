# SPDX-License-Identifier: Apache-2.0
"""Sequence to sequence with GRU cells, attention and teacher forcing, word by word; values of gradients are clipped."""
import random

import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

WORDS, WIDTH, HIDDEN = 6000, 256, 512


class Encoder(nn.Module):
    def __init__(self):
        super(Encoder, self).__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.gru = nn.GRU(WIDTH, HIDDEN, num_layers=2, dropout=0.1)

    def forward(self, words, hidden):
        return self.gru(self.embedding(words), hidden)

    def init_hidden(self, n):
        return torch.zeros(2, n, HIDDEN, device="cuda")


class Decoder(nn.Module):
    def __init__(self):
        super(Decoder, self).__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.attention = nn.Linear(HIDDEN * 2, HIDDEN)
        self.cell = nn.GRUCell(WIDTH + HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, WORDS)

    def forward(self, word, hidden, outputs):
        scores = torch.einsum("nh,snh->ns", hidden, outputs)
        context = torch.einsum("ns,snh->nh", F.softmax(scores, 1), outputs)
        hidden = self.cell(torch.cat((self.embedding(word), context), 1), hidden)
        return F.log_softmax(self.out(hidden), 1), hidden


encoder, decoder = Encoder().cuda(), Decoder().cuda()
encoder_optimizer = torch.optim.RMSprop(encoder.parameters(), lr=0.01, momentum=0.9)
decoder_optimizer = torch.optim.NAdam(decoder.parameters(), lr=0.01)
runner.declare(encoder, encoder_optimizer)
runner.declare(decoder, decoder_optimizer)
runner.mark_inside_backward(encoder.gru)
criterion = nn.NLLLoss()
batches = runner.Batches(lambda: (torch.randint(0, WORDS, (24, 64)).cuda(), torch.randint(0, WORDS, (16, 64)).cuda()))


def train(source, target):
    hidden = encoder.init_hidden(source.size(1))
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    loss = 0
    with truth.phase("forward"):
        outputs, hidden = encoder(source, hidden)
        word = torch.zeros(source.size(1), dtype=torch.long, device="cuda")
        state = hidden[-1]
        forced = random.random() < 0.5
        for i in range(target.size(0)):
            said, state = decoder(word, state, outputs)
            loss = loss + criterion(said, target[i])
            word = target[i] if forced else said.topk(1)[1].squeeze(1).detach()
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        nn.utils.clip_grad_value_(encoder.parameters(), 1.0)
        nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
        encoder_optimizer.step()
        decoder_optimizer.step()
    truth.mark("step")
    return loss.item() / target.size(0)


for _ in range(3):
    train(*batches.next())
truth.mark("end")
truth.finish()
