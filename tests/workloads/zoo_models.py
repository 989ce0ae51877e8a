# SPDX-License-Identifier: Apache-2.0
"""More models, each reaching another corner of the libraries; functions as in models.py."""
import torch
from torch import nn
from torch.nn import functional as F

from models import CUDA, tokens


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    config = WhisperConfig(vocab_size=523, num_mel_bins=24, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                           decoder_attention_heads=4, encoder_ffn_dim=130, decoder_ffn_dim=130, max_source_positions=50,
                           max_target_positions=40, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    model = WhisperForConditionalGeneration(config).to(CUDA)
    return model, lambda: model(input_features=torch.randn(2, 24, 100, device=CUDA), labels=tokens(523, 2, 20)).loss


def t5():
    from transformers import T5Config, T5ForConditionalGeneration
    config = T5Config(vocab_size=601, d_model=64, d_kv=16, d_ff=130, num_layers=2, num_heads=4, decoder_start_token_id=0)
    model = T5ForConditionalGeneration(config).to(CUDA)

    def loss():
        x = tokens(601, 3, 30)
        return model(input_ids=x, labels=x).loss
    return model, loss


def mixtral():
    from transformers import MixtralConfig, MixtralForCausalLM
    config = MixtralConfig(vocab_size=709, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                           num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, use_cache=False)
    model = MixtralForCausalLM(config).to(CUDA)

    def loss():
        x = tokens(709)
        return model(input_ids=x, labels=x).loss
    return model, loss


class Experts(nn.Module):
    """Routing by masks: how many rows an expert sees depends on data."""

    def __init__(self, width=64, experts=4):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x):
        best = self.gate(x).argmax(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = (best == i).nonzero().squeeze(-1)
            out = out.index_add(0, rows, expert(x[rows]))
        return out + x * self.gate(x).softmax(-1).amax(-1, keepdim=True)


def experts():
    model = Experts().to(CUDA)
    return model, lambda: model(torch.randn(40, 64, device=CUDA)).square().mean()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(72, 6, dropout=0.1, batch_first=True)
        self.norm = nn.RMSNorm(72)

    def forward(self, x):
        return self.norm(x + self.attention(x, x, x)[0])


def multihead():
    model = Attention().to(CUDA)
    return model, lambda: model(torch.randn(3, 21, 72, device=CUDA)).square().mean()


class Speech(nn.Module):
    """Spectrum, one-dimensional convolutions, a bidirectional GRU, CTC."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.convolution = nn.Conv1d(33, 48, 3, padding=1)
        self.norm = nn.BatchNorm1d(48)
        self.gru = nn.GRU(48, 40, 2, bidirectional=True, dropout=0.1)
        self.head = nn.Linear(80, 30)

    def forward(self, wave):
        spectrum = torch.stft(wave, 64, 32, window=self.window, return_complex=True).abs()
        h = F.relu(self.norm(self.convolution(spectrum)))
        return self.head(self.gru(h.permute(2, 0, 1))[0]).log_softmax(-1)


def speech():
    model = Speech().to(CUDA)
    lengths = torch.full((3,), 10, dtype=torch.long)

    def loss():
        out = model(torch.randn(3, 1600, device=CUDA))
        labels = torch.randint(1, 30, (3, 10), device=CUDA)
        return F.ctc_loss(out, labels, torch.full((3,), len(out), dtype=torch.long), lengths)
    return model, loss


class ConvNext(nn.Module):
    """Depthwise and strided convolutions, channels last."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 40, 4, stride=4)
        self.depthwise = nn.Conv2d(40, 40, 7, padding=3, groups=40)
        self.norm = nn.GroupNorm(8, 40)
        self.wide, self.narrow = nn.Conv2d(40, 160, 1), nn.Conv2d(160, 40, 1)
        self.grow = nn.ConvTranspose2d(40, 20, 4, stride=2, padding=1)
        self.head = nn.Linear(20, 9)

    def forward(self, x):
        h = self.stem(x)
        h = h + self.narrow(F.gelu(self.wide(self.norm(self.depthwise(h)))))
        return self.head(self.grow(h).mean((2, 3)))


def convnext():
    model = ConvNext().to(CUDA, memory_format=torch.channels_last)

    def loss():
        x = torch.randn(4, 3, 48, 48, device=CUDA).to(memory_format=torch.channels_last)
        return F.cross_entropy(model(x), torch.zeros(4, dtype=torch.long, device=CUDA))
    return model, loss


class Video(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv3d(3, 12, 3, padding=1), nn.Conv3d(12, 20, 3, stride=2, groups=2)
        self.norm = nn.BatchNorm3d(12)
        self.head = nn.Bilinear(20, 20, 5)

    def forward(self, x):
        h = self.second(F.relu(self.norm(self.first(x)))).amax((2, 3, 4))
        return self.head(h, h)


def video():
    model = Video().to(CUDA)
    return model, lambda: model(torch.randn(2, 3, 8, 20, 20, device=CUDA)).square().mean()


def flash():
    """bf16, long enough for the fused attention kernels."""
    model = nn.TransformerEncoderLayer(128, 2, 256, batch_first=True, dropout=0.0).to(CUDA, torch.bfloat16)
    return model, lambda: model(torch.randn(2, 160, 128, device=CUDA, dtype=torch.bfloat16)).float().square().mean()
