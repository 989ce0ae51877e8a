# SPDX-License-Identifier: Apache-2.0
"""Small versions of the models people train, each as a function that gives (module, loss of one
batch). Shapes are odd on purpose: blocks are split, rounded and reused."""
import torch
from torch import nn
from torch.nn import functional as F

CUDA = "cuda"


def tokens(vocabulary, batch=4, length=48):
    return torch.randint(0, vocabulary, (batch, length), device=CUDA)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(vocab_size=1003, n_positions=64, n_embd=96, n_layer=3, n_head=4, use_cache=False)
    model = GPT2LMHeadModel(config).to(CUDA)

    def loss():
        x = tokens(1003)
        return model(input_ids=x, labels=x).loss
    return model, loss


def qwen2():
    from transformers import Qwen2Config, Qwen2ForCausalLM
    config = Qwen2Config(vocab_size=1511, hidden_size=96, intermediate_size=200, num_hidden_layers=3, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=64, use_cache=False)
    with torch.device(CUDA):
        model = Qwen2ForCausalLM(config)

    def loss():
        x = tokens(1511)
        return model(input_ids=x, labels=x).loss
    return model, loss


def bert():
    from transformers import BertConfig, BertForSequenceClassification
    config = BertConfig(vocab_size=1201, hidden_size=96, num_hidden_layers=3, num_attention_heads=4, intermediate_size=210,
                        max_position_embeddings=64, num_labels=3)
    model = BertForSequenceClassification(config).to(CUDA)

    def loss():
        x = tokens(1201)
        return model(input_ids=x, attention_mask=torch.ones_like(x), labels=torch.zeros(4, dtype=torch.long, device=CUDA)).loss
    return model, loss


def vit():
    from torchvision.models import VisionTransformer
    model = VisionTransformer(image_size=64, patch_size=16, num_layers=3, num_heads=4, hidden_dim=96, mlp_dim=200,
                              num_classes=11).to(CUDA)
    return model, lambda: F.cross_entropy(model(torch.randn(5, 3, 64, 64, device=CUDA)),
                                          torch.zeros(5, dtype=torch.long, device=CUDA))


def resnet():
    from torchvision.models import resnet18
    model = resnet18(num_classes=11).to(CUDA)
    return model, lambda: F.cross_entropy(model(torch.randn(3, 3, 64, 64, device=CUDA)),
                                          torch.zeros(3, dtype=torch.long, device=CUDA))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(907, 80)
        self.lstm = nn.LSTM(80, 120, num_layers=2, batch_first=True)
        self.head = nn.Linear(120, 907)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0])


def lstm():
    model = Lstm().to(CUDA)

    def loss():
        x = tokens(907)
        return F.cross_entropy(model(x).flatten(0, 1), x.flatten())
    return model, loss


class UNet(nn.Module):
    def __init__(self, widths=(13, 26, 52)):
        super().__init__()
        ins = (3, *widths)
        self.down = nn.ModuleList(self.block(a, b) for a, b in zip(ins, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(widths, widths[1:]))
        self.merge = nn.ModuleList(self.block(2 * a, a) for a in widths[:-1])
        self.last = nn.Conv2d(widths[0], 2, 1)

    @staticmethod
    def block(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True))

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for i in reversed(range(len(self.up))):
            x = self.merge[i](torch.cat([kept[i], self.up[i](x)], 1))
        return self.last(x)


def unet():
    model = UNet().to(CUDA)
    return model, lambda: F.cross_entropy(model(torch.randn(3, 3, 72, 72, device=CUDA)),
                                          torch.zeros(3, 72, 72, dtype=torch.long, device=CUDA))


def lora():
    from peft import LoraConfig, get_peft_model
    base, _ = gpt2()
    model = get_peft_model(base, LoraConfig(r=4, target_modules=["c_attn"], task_type="CAUSAL_LM"))

    def loss():
        x = tokens(1003)
        return model(input_ids=x, labels=x).loss
    return model, loss


class Blocks(nn.Module):
    """A plain transformer; `checkpoint` recomputes each layer in the backward pass."""

    def __init__(self, width=96, layers=3, checkpoint=None):
        super().__init__()
        self.embedding = nn.Embedding(811, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 2 * width + 6, dropout=0.0, batch_first=True)
                                    for _ in range(layers))
        self.head = nn.Linear(width, 811)
        self.checkpoint = checkpoint

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint
        h = self.embedding(x)
        for layer in self.layers:
            h = layer(h) if self.checkpoint is None else checkpoint(layer, h, use_reentrant=self.checkpoint == "reentrant")
        return self.head(h)


def blocks(checkpoint=None):
    model = Blocks(checkpoint=checkpoint).to(CUDA)
    return model, loss_of(model)


def loss_of(model):
    def loss():
        x = tokens(811)
        return F.cross_entropy(model(x).flatten(0, 1), x.flatten())
    return loss


def checkpointed():
    return blocks("nonreentrant")


def checkpointed_reentrant():
    return blocks("reentrant")


def compiled():
    model, _ = blocks()
    return model, loss_of(torch.compile(model))


def mlp():
    model = nn.Sequential(nn.Linear(130, 260), nn.GELU(), nn.Linear(260, 70)).to(CUDA)
    return model, lambda: model(torch.randn(33, 130, device=CUDA)).square().mean()
