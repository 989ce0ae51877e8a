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
free, total = torch.cuda.mem_get_info()
print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), total - free - torch.cuda.memory_reserved())
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
}


def card():
    name = torch.cuda.get_device_properties(0)
    for part, profile in PROFILES.items():
        if part in name.name:
            return profile
    return f"card={name.total_memory >> 20}MiB"


def record(work, name, simulated):
    """One recorded run: what PyTorch says, and what the recording says."""
    script = work / "script.py"
    script.write_text(PROLOGUE + SCRIPTS[name] + EPILOGUE)
    out = work / "run.gmt"
    out.unlink(missing_ok=True)
    sim = ["--sim", card()] if simulated else []
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUMEMTRACE_")}
    done = subprocess.run([TOOL, "run", *sim, "-o", str(out), "--", sys.executable, str(script)],
                          capture_output=True, text=True, env=env, timeout=120)
    line = [x for x in done.stdout.splitlines() if x.startswith("PEAK")]
    if not line:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    allocated, reserved, outside = map(int, line[0].split()[1:])
    report = json.loads(subprocess.run([TOOL, "report", "--json", str(out)], capture_output=True, text=True, check=True).stdout)
    return allocated, reserved, outside, report["devices"][0]["peak_bytes"]


def row(work, name):
    try:
        real = record(work, name, False)
        sim = record(work, name, True)
    except Exception as error:
        return f"| {name} | failed: {error} | | | | | | |"
    exact = "yes" if real[0] == real[3] and sim[0] == sim[3] else f"no: {real[3]} / {sim[3]}"
    return (f"| {name} | {real[0]} | {sim[0]} | {sim[0] / real[0]:.4f} | {real[1]} | {sim[1] / real[1]:.4f} | {exact} |"
            f" {real[2] / 2**20:.0f} / {sim[2] / 2**20:.0f} |")


def main():
    print(f"Simulated as `{card()}`.\n")
    print("| script | real peak, bytes | simulated | ratio | real reserved | ratio | recording = PyTorch | outside the framework, MiB real / simulated |")
    print("|---|---|---|---|---|---|---|---|")
    for name in SCRIPTS:
        print(row(Path(sys.argv[1]), name), flush=True)


main()
