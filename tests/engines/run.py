# SPDX-License-Identifier: Apache-2.0
"""run.py [--case NAME]... [--seconds N] [--keep FOLDER] [--table FILE]: starts serving engines, unchanged, on a simulated card. Compares the account in
`report` with the engine's own figures: the weights of its model, the tokens that its KV cache holds, what it logs."""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
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
CASES = {  # name: engine, shape, devices, its arguments
    "eager": ("vllm", "1B", 1, {"enforce_eager": True, "max_model_len": 2048, "max_num_seqs": 16}),
    "graphs": ("vllm", "1B", 1, {"max_model_len": 2048, "max_num_seqs": 16}),
    "graphs-8b": ("vllm", "8B", 1, {"max_model_len": 4096, "max_num_seqs": 32}),
    "tensor-parallel": ("vllm", "1B", 2, {"tensor_parallel_size": 2, "enforce_eager": True, "max_model_len": 2048, "max_num_seqs": 16}),
    "fp8-cache": ("vllm", "1B", 1, {"enforce_eager": True, "kv_cache_dtype": "fp8", "max_model_len": 2048, "max_num_seqs": 16}),
    "sglang": ("sglang", "8B", 1, {}),
    "sglang-eager": ("sglang", "1B", 1, {"disable_cuda_graph": True, "disable_piecewise_cuda_graph": True}),
    "sglang-tensor-parallel": ("sglang", "1B", 2, {"tp_size": 2}),
}
PYTHONS = {"vllm": ROOT / ".venv-engines/bin/python", "sglang": ROOT / ".venv-sglang/bin/python"}
# Log lines of an engine: the pattern of its tokens; then part of the account, words for the table, its key there, patterns in front of figures in GiB.
LOGS = {
    "vllm": (r"GPU KV cache size: ([\d,]+) tokens", [
        ("weights", "`Model loading took`", "bytes", "Model loading took"),
        ("kv_cache", "`Available KV cache memory`", "bytes", "Available KV cache memory:"),
        ("work", "`torch peak memory increase` of the profile run", "planned_bytes", "torch peak memory increase:")]),
    "sglang": (r"#tokens: (\d+)", [
        ("weights", "`mem usage` of `Load weight end`", "bytes", "Load weight end.*mem usage="),
        ("kv_cache", "`K size` and `V size`", "bytes", "K size:", "V size:")]),
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


def run(name, folder, seconds):
    """Exit code, the engine's output, seconds, and the report of each of its processes."""
    kind, shape, devices, arguments = CASES[name]
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**LLAMA, **SHAPES[shape]}))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "VLLM_"))}
    env.update(HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_LOGGING_LEVEL="DEBUG", PATH=f"{PYTHONS[kind].parent}:{env['PATH']}")
    if shutil.which("g++-11"):  # g++ 12 does not compile a kernel of SGLang 0.5.12
        env.setdefault("NVCC_CCBIN", "g++-11")
    begin = time.monotonic()
    with open(folder / "output", "w") as output:
        process = subprocess.Popen([TOOL, "run", "--sim", f"{CARD},{devices}", "-o", folder / "run.gmt", "--", PYTHONS[kind], HERE / f"{kind}_generate.py",
                                    folder, *(f"{k}={json.dumps(v)}" for k, v in arguments.items())], env=env, stdout=output, stderr=output, start_new_session=True)
        try:
            code = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            code = "none, its time ran out"
        finally:
            with contextlib.suppress(ProcessLookupError):  # an engine's workers outlive what started them
                os.killpg(process.pid, signal.SIGKILL)
    reports = [json.loads(subprocess.run([TOOL, "report", path, "--json"], capture_output=True, text=True, check=True).stdout)
               for path in sorted(folder.glob("run*.gmt"))]
    return code, (folder / "output").read_text(), time.monotonic() - begin, reports


def logged(text, *patterns):
    """The sum of the first figure behind each pattern in bytes, and how far it may be off: they have two decimals."""
    found = [re.search(pattern + r" ?([\d.]+) ?(?:GiB|GB)", text) for pattern in patterns]
    found = [float(match[1]) for match in found if match]
    return (sum(found) * 2**30, 0.005 * 2**30 * len(found)) if found else None


def own_figures(text, kind, shape, devices, width):
    """Part of the account, words, its key there, bytes by the engine, and how exact they are."""
    pattern, figures = LOGS[kind]
    tokens = int(re.search(pattern, text)[1].replace(",", ""))
    return [("weights", "by the model's shape", "bytes", (weights(shape) / devices, 0)),
            ("kv_cache", f"by its {tokens:,} tokens", "bytes", (cache(shape, tokens, width) / devices, 0)),
            *((part, words, key, logged(text, *before)) for part, words, key, *before in figures)]


def judge(name, folder, limit):
    """A row of the first table, rows of the second, and what is wrong."""
    kind, shape, devices, arguments = CASES[name]
    code, text, seconds, reports = run(name, folder, limit)
    if code or "answered [8, 8, 8, 8]" not in text:
        return f"| {name} | not in {seconds:.0f} s | |", [], [f"{name}: exit code {code}: {folder / 'output'}"]
    engines = [device for report in reports for device in report["devices"] if "engine" in device]
    accounts = [device["engine"] for device in engines]
    unknown = sum(device["categories_at_peak"].get("unknown", 0) for device in engines)
    first = f"| {name} ({devices} x {shape}) | {seconds:.0f} s | {100 * unknown / sum(device['peak_bytes'] for device in engines):.3f} % |" if engines else ""
    if len(accounts) != devices:
        return first, [], [f"{name}: {len(accounts)} accounts of {devices}"]
    parts, rows, wrong = {part["part"]: part for part in accounts[0]["parts"]}, [], []
    for part, words, key, own in own_figures(text, kind, SHAPES[shape], devices, 1 if arguments.get("kv_cache_dtype") == "fp8" else 2):
        ours = parts.get(part, {}).get(key, 0)
        if own is None:
            continue
        rows.append(f"| {name} ({devices} x {shape}) | {part}, {words} | {own[0] / 2**30:.3f} GiB | {ours / 2**30:.3f} GiB | {100 * (ours / own[0] - 1):+.2f} % |")
        if abs(ours - own[0]) > own[0] / 100 + own[1]:
            wrong.append(f"{name}: {part} {ours} bytes, {words}: {own[0]:.0f}")
    took = logged(text, "Graph capturing finished.*took", "Capture cuda graph end.*mem usage=", "Capture piecewise CUDA graph end.*mem usage=")
    graphs = sum(parts[p]["bytes"] for p in ("cuda_graphs", "graphs_of_pieces") if p in parts)
    if took and graphs:
        rows.append(f"| {name} ({devices} x {shape}) | cuda_graphs, growth of the device during the capture | {took[0] / 2**30:.3f} GiB | {graphs / 2**30:.3f} GiB | (see below) |")
    return first, rows, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--seconds", type=float, default=1500, help="that a case may take")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    rows, wrong, cases = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.case or CASES:
            first, found, faults = judge(name, (options.keep or Path(folder)) / name, options.seconds)
            print(first, *found, *faults, sep="\n", flush=True)
            cases.append(first)
            rows += found
            wrong += faults
    if options.table and not options.case:
        before, rest = options.table.read_text().split(MARK)
        above = f"| case | four answers after, on {os.cpu_count()} cores | `unknown` bytes at the peak |\n|---|---:|---:|\n"
        head = "| case | part of the account, and the engine's figure | the engine's | ours | difference |\n|---|---|---:|---:|---:|\n"
        options.table.write_text(before + MARK + above + "\n".join(cases) + "\n\n" + head + "\n".join(rows) + "\n" + END + rest.split(END)[1])
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
