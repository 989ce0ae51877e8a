# SPDX-License-Identifier: Apache-2.0
"""Photographs are captioned by an LSTM with attention over the features of a ResNet; a validation follows each epoch."""
import contextlib
import random
import sys

import torch
import torchvision
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

VOCAB, FEATURES, DIM, BATCH, LONGEST, device = 9_490, 2048, 512, 10, 18, "cuda"


class DecoderWithAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder_att, self.decoder_att, self.full_att = nn.Linear(FEATURES, DIM), nn.Linear(DIM, DIM), nn.Linear(DIM, 1)
        self.embedding, self.decode_step = nn.Embedding(VOCAB, DIM), nn.LSTMCell(DIM + FEATURES, DIM)
        self.init_h, self.init_c, self.f_beta = nn.Linear(FEATURES, DIM), nn.Linear(FEATURES, DIM), nn.Linear(DIM, FEATURES)
        self.dropout, self.fc = nn.Dropout(0.5), nn.Linear(DIM, VOCAB)

    def forward(self, encoder_out, captions, caption_lengths):
        caption_lengths, sort_ind = caption_lengths.sort(descending=True)
        decode_lengths, sort_ind = (caption_lengths - 1).tolist(), sort_ind.to(device)
        encoder_out, captions = encoder_out.transpose(1, 2)[sort_ind], captions[sort_ind]
        embeddings, h, c = self.embedding(captions), self.init_h(encoder_out.mean(1)), self.init_c(encoder_out.mean(1))
        predictions = torch.zeros(len(captions), max(decode_lengths), VOCAB, device=device)
        alphas = torch.zeros(len(captions), max(decode_lengths), encoder_out.shape[1], device=device)
        for t in range(max(decode_lengths)):
            n = sum(length > t for length in decode_lengths)
            att = self.full_att((self.encoder_att(encoder_out[:n]) + self.decoder_att(h[:n]).unsqueeze(1)).relu()).squeeze(2)
            context = self.f_beta(h[:n]).sigmoid() * (encoder_out[:n] * att.softmax(1).unsqueeze(2)).sum(1)
            h, c = self.decode_step(torch.cat([embeddings[:n, t], context], 1), (h[:n], c[:n]))
            predictions[:n, t], alphas[:n, t] = self.fc(self.dropout(h)), att.softmax(1)
        return predictions, captions, decode_lengths, alphas


def loader(batches):
    for _ in range(batches):
        lengths = torch.tensor([random.randint(9, LONGEST) for _ in range(BATCH)])
        yield torch.rand(BATCH, 3, 256, 256), torch.randint(0, VOCAB, (BATCH, LONGEST)), lengths


def caption_loss(scores, captions, decode_lengths, alphas):
    scores, targets = (pack_padded_sequence(t, decode_lengths, batch_first=True)[0] for t in (scores, captions[:, 1:]))
    return nn.functional.cross_entropy(scores, targets) + ((1.0 - alphas.sum(1)) ** 2).mean()


def train(encoder, decoder, optimizers):
    encoder.train(), decoder.train()
    for images, captions, lengths in loader(6):
        loss = caption_loss(*decoder(encoder(images.to(device)), captions.to(device), lengths))
        [optimizer.zero_grad() for optimizer in optimizers]
        loss.backward()
        [optimizer.step() for optimizer in optimizers]


def validate(encoder, decoder):
    encoder.eval(), decoder.eval()
    losses, hypotheses = [], []
    with torch.no_grad() if sys.argv[1] == "fixed" else contextlib.nullcontext():
        for images, captions, lengths in loader(4):
            scores, captions_sorted, decode_lengths, alphas = decoder(encoder(images.to(device)), captions.to(device), lengths)
            scores_copy = scores.clone()
            loss = caption_loss(scores, captions_sorted, decode_lengths, alphas)
            losses.append(loss.item())
            hypotheses += [p[:n] for p, n in zip(scores_copy.max(2).indices.tolist(), decode_lengths)]
    return sum(losses) / len(losses), hypotheses


random.seed(3)
encoder = nn.Sequential(*list(torchvision.models.resnet50(weights=None).children())[:-2], nn.Flatten(2)).to(device)
encoder[:5].requires_grad_(False)
decoder = DecoderWithAttention().to(device)
optimizers = [torch.optim.Adam([p for p in m.parameters() if p.requires_grad], lr=lr) for m, lr in ((encoder, 1e-4), (decoder, 4e-4))]
for epoch in range(2):
    train(encoder, decoder, optimizers)
    validation_loss, hypotheses = validate(encoder, decoder)
    print("epoch", epoch, validation_loss, len(hypotheses), "captions", torch.cuda.max_memory_allocated() >> 20, "MiB")
