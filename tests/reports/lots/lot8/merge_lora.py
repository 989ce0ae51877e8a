# SPDX-License-Identifier: Apache-2.0
"""A language model is finetuned with LoRA; its weights are merged into the base model afterwards, and stored."""
import os
import signal
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

VOCAB, WIDTH, LAYERS, RANK, LENGTH, BATCH = 16_000, 1024, 14, 8, 256, 2


class LoraLinear(nn.Module):
    def __init__(self, base_layer):
        super().__init__()
        self.base_layer = base_layer.requires_grad_(False)
        shapes = (base_layer.in_features, RANK), (RANK, base_layer.out_features)
        self.lora_A, self.lora_B = (nn.Linear(a, b, bias=False, device="cuda", dtype=torch.float32) for a, b in shapes)

    def forward(self, x):
        return self.base_layer(x) + self.lora_B(self.lora_A(x.float())).half()

    def merge(self):
        self.base_layer.weight.data += (self.lora_B.weight @ self.lora_A.weight).half()
        return self.base_layer


class CausalLM(nn.Module):
    def __init__(self):
        super().__init__()
        layers = (nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, batch_first=True, norm_first=True) for _ in range(LAYERS))
        self.embed, self.layers, self.lm_head = nn.Embedding(VOCAB, WIDTH), nn.ModuleList(layers), nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids):
        x = self.embed(ids).requires_grad_(self.training)
        for layer in self.layers:
            x = checkpoint(layer, x, nn.Transformer.generate_square_subsequent_mask(LENGTH, "cuda", x.dtype), is_causal=True, use_reentrant=False)
        return self.lm_head(x)


def peft_model():
    torch.set_default_dtype(torch.float16)
    with torch.device("cuda"):
        model = CausalLM().requires_grad_(False)
    torch.set_default_dtype(torch.float32)
    for layer in model.layers:
        layer.linear1, layer.linear2 = LoraLinear(layer.linear1), LoraLinear(layer.linear2)
    return model


def do_train_cli(lora_model_path):
    model = peft_model()
    lora = {name: p for name, p in model.named_parameters() if p.requires_grad}
    signal.signal(signal.SIGINT, lambda signum, frame: torch.save(model.state_dict(), lora_model_path))
    optimizer = torch.optim.AdamW(lora.values(), lr=2e-4)
    for step in range(6):
        ids = torch.randint(0, VOCAB, (BATCH, LENGTH)).to("cuda")
        loss = F.cross_entropy(model(ids)[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, loss.item())
    torch.save({name: p.detach().cpu() for name, p in lora.items()}, lora_model_path)


if __name__ == "__main__":
    if sys.argv[1] == "train":
        sys.exit(do_train_cli(sys.argv[2]))
    lora_model_path = os.path.join(tempfile.mkdtemp(), "adapter_model.bin")
    if sys.argv[1] == "fixed":
        subprocess.run([sys.executable, __file__, "train", lora_model_path], check=True)
    else:
        do_train_cli(lora_model_path)
    model = peft_model().eval()
    model.load_state_dict(torch.load(lora_model_path), strict=False)
    for layer in model.layers:
        layer.linear1, layer.linear2 = layer.linear1.merge(), layer.linear2.merge()
    torch.save(model.state_dict(), lora_model_path)
    print("merged", torch.cuda.max_memory_allocated() >> 20, "MiB")
