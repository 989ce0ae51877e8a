# SPDX-License-Identifier: Apache-2.0
"""run.py [--case NAME]... [--keep FOLDER] [--table FILE]: starts serving engines, unchanged, on a simulated card. Compares the classes
at the peak with the engine's own figures: the weights of its model, the tokens that its KV cache holds."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOL = ROOT / "build/gpumemtrace"
CARD = "h100-80g"
MARK, END = "<!-- table -->\n", "<!-- end -->"
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16", "hidden_act": "silu", "rms_norm_eps": 1e-5,
         "rope_theta": 500000.0, "max_position_embeddings": 8192, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2}
SHAPES = {
    "1B": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
           "vocab_size": 32000, "head_dim": 64},
    "8B": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
           "vocab_size": 128256, "head_dim": 128},
}
CASES = {  # name: shape, devices, arguments of the engine
    "eager": ("1B", 1, {"enforce_eager": True, "max_model_len": 2048, "max_num_seqs": 16}),
    "graphs": ("1B", 1, {"max_model_len": 2048, "max_num_seqs": 16}),
    "graphs-8b": ("8B", 1, {"max_model_len": 4096, "max_num_seqs": 32}),
    "tensor-parallel": ("1B", 2, {"tensor_parallel_size": 2, "enforce_eager": True, "max_model_len": 2048, "max_num_seqs": 16}),
    "fp8-cache": ("1B", 1, {"enforce_eager": True, "kv_cache_dtype": "fp8", "max_model_len": 2048, "max_num_seqs": 16}),
}


def weights(shape):
    """Bytes in bfloat16, by the architecture: attention, a gated MLP, two norms for each layer; two tables of the vocabulary."""
    width, heads = shape["hidden_size"], shape["head_dim"]
    attention = 2 * width * heads * (shape["num_attention_heads"] + shape["num_key_value_heads"])
    layer = attention + 3 * width * shape["intermediate_size"] + 2 * width
    return 2 * (shape["num_hidden_layers"] * layer + 2 * shape["vocab_size"] * width + width)


def cache(shape, tokens, width):
    """Bytes of the keys and values of so many tokens."""
    return tokens * 2 * shape["num_hidden_layers"] * shape["num_key_value_heads"] * shape["head_dim"] * width


def run(name, folder):
    """The engine's output, seconds, and the report of each of its processes."""
    shape, devices, arguments = CASES[name]
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**LLAMA, **SHAPES[shape]}))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "VLLM_"))}
    env.update(HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1")
    begin = time.monotonic()
    done = subprocess.run([TOOL, "run", "--sim", f"{CARD},{devices}", "-o", folder / "run.gmt", "--", sys.executable, HERE / "vllm_generate.py",
                           folder, *(f"{k}={json.dumps(v)}" for k, v in arguments.items())], env=env, capture_output=True, text=True, timeout=1500)
    (folder / "output").write_text(done.stdout + done.stderr)
    reports = [json.loads(subprocess.run([TOOL, "report", path, "--json"], capture_output=True, text=True, check=True).stdout)
               for path in sorted(folder.glob("run*.gmt"))]
    return done, time.monotonic() - begin, reports


def judge(name, folder):
    """A row of the table, and what is wrong."""
    shape, devices, arguments = CASES[name]
    done, seconds, reports = run(name, folder)
    text = done.stdout + done.stderr
    if done.returncode or "answered [8, 8, 8, 8]" not in text:
        return f"| {name} | did not answer | | | | | {seconds:.0f} |", [f"{name}: exit code {done.returncode}: {folder / 'output'}"]
    tokens = int(re.search(r"GPU KV cache size: ([\d,]+) tokens", text)[1].replace(",", ""))
    width = 1 if arguments.get("kv_cache_dtype") == "fp8" else 2
    own = {"parameters": weights(SHAPES[shape]) / devices, "kv_cache": cache(SHAPES[shape], tokens, width) / devices}
    main = max((device for report in reports for device in report["devices"]), key=lambda device: device["peak_bytes"])
    cells, wrong = [], []
    for kind, bytes_ in own.items():
        ours = main["categories_at_peak"].get(kind, 0)
        difference = 100 * (ours / bytes_ - 1)
        cells += [f"{bytes_ / 2**30:.3f} GiB", f"{difference:+.2f} %"]
        if abs(difference) > 1:
            wrong.append(f"{name}: {kind} {ours} bytes, the engine has {bytes_:.0f}")
    return f"| {name} | {devices} x {shape} | {' | '.join(cells)} | {seconds:.0f} |", wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    rows, wrong = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.case or CASES:
            row, faults = judge(name, (options.keep or Path(folder)) / name)
            print(row, *faults, sep="\n", flush=True)
            rows.append(row)
            wrong += faults
    if options.table and not options.case:
        before, rest = options.table.read_text().split(MARK)
        head = "| case | model | weights, by the shape | in `parameters` | KV cache, by the engine's tokens | in `kv cache` | seconds |\n|---|---|---:|---:|---:|---:|---:|\n"
        options.table.write_text(before + MARK + head + "\n".join(rows) + "\n" + END + rest.split(END)[1])
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
