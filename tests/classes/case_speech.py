# SPDX-License-Identifier: Apache-2.0
"""Speech to text: waves become spectra on the device, masks hide parts of them, convolutions over time and a recurrent network
in both directions, alignment-free loss, Adafactor-like schedule, word errors counted on kept answers."""
import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth


class Spectrum(nn.Module):
    def __init__(self, n_fft=400, mels=80):
        super().__init__()
        self.n_fft = n_fft
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("mel", torch.rand(mels, n_fft // 2 + 1))

    @torch.no_grad()
    def forward(self, wave):
        frames = wave.unfold(-1, self.n_fft, 160) * self.window
        power = torch.matmul(frames, self.dft()).abs() + 1e-6
        mel = torch.matmul(power, self.mel.t()).clamp(min=1e-10).log10().transpose(1, 2)
        return (mel - mel.mean((1, 2), keepdim=True)) / (mel.std((1, 2), keepdim=True) + 1e-5)

    def dft(self):
        t = torch.arange(self.n_fft, device=self.window.device, dtype=torch.float32)
        return torch.cos(t[:, None] * t[None, :self.n_fft // 2 + 1] * (2 * torch.pi / self.n_fft))


class Recogniser(nn.Module):
    def __init__(self, width=512, letters=48):
        super().__init__()
        self.spectrum = Spectrum()
        self.conv = nn.Sequential(nn.Conv1d(80, width, 11, 2, 5), nn.BatchNorm1d(width), nn.ReLU(), nn.Conv1d(width, width, 11, 1, 5),
                                  nn.BatchNorm1d(width), nn.ReLU())
        self.rnn = nn.LSTM(width, width, 3, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * width, letters)

    def forward(self, wave):
        x = self.spectrum(wave)
        if self.training:
            x = x.masked_fill(torch.rand(x.shape[0], x.shape[1], 1, device=x.device) < 0.1, 0.0)
        x = self.conv(x).transpose(1, 2)
        x, _ = self.rnn(x)
        return self.out(x).log_softmax(-1)


model = Recogniser().cuda()
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=10)
runner.declare(model, optimizer)
truth.holds_sizes("parameters", "the flat weights of the network", lambda: [sum(w.nbytes for w in model.rnn._flat_weights)])
runner.mark_inside_backward(model.conv)
answers = []
loader = runner.Batches(lambda: [torch.randn(24, 80000).cuda(), torch.randint(1, 48, (24, 30)).cuda()])
for epoch in range(2):
    model.train()
    for _ in range(2):
        wave, text = loader.next()
        with truth.phase("forward"):
            logp = model(wave)
            loss = F.ctc_loss(logp.transpose(0, 1), text, torch.full((24,), logp.shape[1]), torch.full((24,), 30), zero_infinity=True)
        truth.mark("forward")
        optimizer.zero_grad()
        with truth.phase("backward"):
            loss.backward()
        truth.mark("backward")
        with truth.phase("step"):
            nn.utils.clip_grad_value_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        truth.mark("step")
    model.eval()
    with torch.no_grad():
        for _ in range(2):
            wave, text = loader.next()
            with truth.phase("forward"):
                logp = model(wave)
                answers.append(logp.argmax(-1))
            truth.mark("evaluated")
truth.finish()
