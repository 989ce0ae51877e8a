#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Part of gpu-check.sh: the same scripts on the real and on a simulated card, peaks side by side.

Both runs are recorded, so each row also compares the recording with PyTorch's own counters. The
simulated card takes the real one's profile if there is one, else its size.
"""
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
TOOL = str(ROOT / "build" / "gpumemtrace")
PROFILES = {"4090": "rtx4090-24g", "A100": "a100-80g", "H100": "h100-80g", "H200": "h200-141g", "B200": "b200-180g"}

PROLOGUE = """
import torch, torch.nn as nn
def steps(model, make, n=3, amp=False):
    opt = torch.optim.AdamW(model.parameters())
    for _ in range(n):
        with torch.autocast("cuda", torch.bfloat16, enabled=amp):
            out = model(*make())
        out.float().sum().backward()
        opt.step()
        opt.zero_grad()
"""
EPILOGUE = """
torch.cuda.synchronize()
print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
"""
HF = """
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
def llama(width, inner, layers, heads, kv):
    c = LlamaConfig(hidden_size=width, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv,
                    vocab_size=32000, use_cache=False)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"): m = LlamaForCausalLM(c)
    torch.set_default_dtype(torch.float32)
    return m
def language(m, batch, length, n=3, amp=False):
    m.train()
    opt = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad])
    for _ in range(n):
        tokens = torch.randint(0, 32000, (batch, length), device="cuda")
        with torch.autocast("cuda", torch.bfloat16, enabled=amp):
            loss = m(input_ids=tokens, labels=tokens).loss
        loss.backward()
        opt.step()
        opt.zero_grad()
"""
SCRIPTS = {
    "linear": """
m = nn.Linear(10_000, 50_000, device="cuda")
for _ in range(3):
    x = torch.randn(5_000, 10_000, device="cuda"); y = m(x)
""",
    "mlp, AdamW": """
m = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(8)]).cuda()
steps(m, lambda: (torch.randn(512, 4096, device="cuda"),))
""",
    "transformer encoder, fp32": """
m = nn.TransformerEncoder(nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True), 12).cuda()
steps(m, lambda: (torch.randn(16, 256, 1024, device="cuda"),))
""",
    "transformer encoder, bf16 autocast": """
m = nn.TransformerEncoder(nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True), 12).cuda()
steps(m, lambda: (torch.randn(16, 256, 1024, device="cuda"),), amp=True)
""",
    "convolutions": """
m = nn.Sequential(nn.Conv2d(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 256, 3), nn.BatchNorm2d(256), nn.ReLU(),
                  nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1000)).cuda()
steps(m, lambda: (torch.randn(32, 3, 224, 224, device="cuda"),))
""",
    "LSTM": """
class Last(nn.LSTM):
    def forward(self, x): return super().forward(x)[0]
m = Last(512, 1024, 2, batch_first=True).cuda()
steps(m, lambda: (torch.randn(64, 128, 512, device="cuda"),))
""",
    "GPT-2 124M, bf16 autocast": HF + """
m = GPT2LMHeadModel(GPT2Config(use_cache=False)).cuda()
language(m, 8, 1024, amp=True)
""",
    "Llama 1.2B, AdamW, bf16, checkpointing": HF + """
m = llama(2048, 8192, 16, 32, 8)
m.gradient_checkpointing_enable()
language(m, 4, 2048)
""",
    "Llama 8B, LoRA, bf16": HF + """
m = llama(4096, 14336, 32, 32, 8)
from peft import LoraConfig, get_peft_model
m = get_peft_model(m, LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM"))
language(m, 1, 2048)
""",
    "Llama 1.2B, 8 x 512 tokens and 128 more": HF + """
m = llama(2048, 8192, 16, 32, 8).eval()
m.config.use_cache = True
tokens = torch.randint(0, 32000, (8, 512), device="cuda")
m.generate(tokens, max_new_tokens=128, min_new_tokens=128, do_sample=False, pad_token_id=0)
""",
    "Mixtral, 8 experts": HF + """
from transformers import MixtralConfig, MixtralForCausalLM
c = MixtralConfig(hidden_size=1024, intermediate_size=3584, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4,
                  num_local_experts=8, vocab_size=32000, use_cache=False, dtype=torch.bfloat16)
with torch.device("cuda"): m = MixtralForCausalLM(c).bfloat16()
language(m, 4, 1024)
""",
    "compiled Llama 1.2B": HF + """
m = torch.compile(llama(2048, 8192, 16, 32, 8))
language(m, 2, 2048)
""",
    "ViT-L/16 of timm, channels last, autocast": """
import timm
m = timm.create_model("vit_large_patch16_224").cuda()
steps(m, lambda: (torch.randn(32, 3, 224, 224, device="cuda"),), amp=True)
""",
    "ConvNeXt-B of timm, autocast": """
import timm
m = timm.create_model("convnext_base").cuda()
steps(m, lambda: (torch.randn(32, 3, 224, 224, device="cuda"),), amp=True)
""",
    "ResNet-50 of torchvision, channels last, autocast": """
import torchvision
m = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
steps(m, lambda: (torch.randn(64, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last),), amp=True)
""",
}


def card():
    name = torch.cuda.get_device_properties(0)
    for part, profile in PROFILES.items():
        if part in name.name:
            return profile
    return f"card={name.total_memory >> 20}MiB"


def environment(**more):
    """This program's, without settings of the recorder and of the simulated device."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_"))} | more


def record(work, name, simulated):
    """One recorded run: what PyTorch says, and what the recording says."""
    script = work / f"{list(SCRIPTS).index(name)}{'-simulated' if simulated else ''}.py"
    script.write_text(PROLOGUE + SCRIPTS[name] + EPILOGUE)
    out = script.with_suffix(".gmt")
    out.unlink(missing_ok=True)
    sim = ["--sim", card()] if simulated else []
    done = subprocess.run([TOOL, "run", *sim, "-o", str(out), "--", sys.executable, str(script)],
                          capture_output=True, text=True, env=environment(), timeout=120)
    line = [x for x in done.stdout.splitlines() if x.startswith("PEAK")]
    if not line:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    allocated, reserved = map(int, line[0].split()[1:])
    report = json.loads(subprocess.run([TOOL, "report", "--json", str(out)], capture_output=True, text=True, check=True).stdout)
    return allocated, reserved, report["devices"][0]["peak_bytes"]


def row(work, name, simulated):
    try:
        real = record(work, name, False)
        sim = simulated.result()
    except Exception as error:
        return f"| {name} | failed: {error} | | | | | |"
    exact = "yes" if real[0] == real[2] and sim[0] == sim[2] else f"no: {real[2]} / {sim[2]}"
    return (f"| {name} | {real[0]} | {sim[0]} | {sim[0] / real[0]:.4f} | {real[1]} | {sim[1] / real[1]:.4f} | {exact} |")


def main():
    print(f"Simulated as `{card()}`.\n")
    print("| script | real peak, bytes | simulated | ratio | real reserved | ratio | recording = PyTorch |")
    print("|---|---|---|---|---|---|---|")
    work = Path(sys.argv[1])
    with ThreadPoolExecutor(8) as pool:
        simulated = {name: pool.submit(record, work, name, True) for name in SCRIPTS}
        for name in SCRIPTS:
            print(row(work, name, simulated[name]), flush=True)


if __name__ == "__main__":
    main()
