# SPDX-License-Identifier: Apache-2.0
"""A small serving engine: weights, a profile run, a paged KV cache in what is left, CUDA graphs for small batches, then requests. It says
what it takes as engines do."""
import argparse

import torch
from torch import nn
from torch.nn import functional

PAGE = 16


class Attention(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.heads, self.kv_heads, self.size = o.heads, o.kv_heads, o.width // o.heads
        self.qkv = nn.Linear(o.width, (o.heads + 2 * o.kv_heads) * self.size, bias=False)
        self.out = nn.Linear(o.heads * self.size, o.width, bias=False)

    def forward(self, x, pages, slots):
        q, k, v = self.qkv(x).split([self.heads * self.size, self.kv_heads * self.size, self.kv_heads * self.size], -1)
        if pages is not None:
            pages.view(2, -1, self.kv_heads, self.size)[:, slots] = torch.stack((k, v)).view(2, -1, self.kv_heads, self.size)
        return self.out(q)


class Layer(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.attention, self.norms = Attention(o), nn.ModuleList(nn.LayerNorm(o.width, bias=False) for _ in range(2))
        self.up, self.down = nn.Linear(o.width, 4 * o.width, bias=False), nn.Linear(4 * o.width, o.width, bias=False)

    def forward(self, x, pages, slots):
        x = x + self.attention(self.norms[0](x), pages, slots)
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class Model(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.embedding, self.head = nn.Embedding(o.words, o.width), nn.Linear(o.width, o.words, bias=False)
        self.layers = nn.ModuleList(Layer(o) for _ in range(o.layers))

    def forward(self, tokens, cache, slots):
        x = self.embedding(tokens)
        for layer, pages in zip(self.layers, cache):
            x = layer(x, pages, slots)
        return self.head(x)


def profile_run(model, o):
    """Bytes of the device that the engine may take, less what it has and what the largest pass needs."""
    torch.cuda.reset_peak_memory_stats()
    begin = torch.cuda.memory_allocated()
    model(torch.zeros(o.batch_tokens, dtype=torch.long, device="cuda"), [None] * o.layers, None)
    work = torch.cuda.max_memory_allocated() - begin
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    print(f"passes of {o.batch_tokens:,} tokens: {work} bytes")
    return int(o.utilization * total) - (total - free) - work


def make_kv_cache(room, o):
    page = 2 * PAGE * o.kv_heads * (o.width // o.heads) * 2
    pages = room // (page * o.layers)
    print(f"KV cache: {pages * page * o.layers} bytes\nKV cache size: {pages * PAGE:,} tokens")
    if o.max_model_len > pages * PAGE:
        raise ValueError(f"a request of {o.max_model_len} tokens is larger than the KV cache, which has room for {pages * PAGE}")
    return [torch.zeros(2, pages, PAGE, o.kv_heads, o.width // o.heads, dtype=torch.half, device="cuda") for _ in range(o.layers)]


def capture(model, cache, sizes):
    graphs, pool = {}, torch.cuda.graph_pool_handle()
    for n in sizes:
        tokens, slots = (torch.zeros(n, dtype=torch.long, device="cuda") for _ in range(2))
        model(tokens, cache, slots)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            logits = model(tokens, cache, slots)
        graphs[n] = graph, tokens, slots, logits
    return graphs


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser()
    for name, value in {"layers": 12, "width": 1024, "heads": 16, "kv_heads": 4, "words": 32000, "batch_tokens": 4096, "max_model_len": 4096}.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    parser.add_argument("--utilization", type=float, default=0.9)
    parser.add_argument("--requests", type=int, nargs="*", default=[512] * 3)
    parser.add_argument("--repeat", type=int, default=1, help="times that all requests are answered")
    parser.add_argument("--keep-logits", action="store_true", help="of the last token of each answer, for a log")
    parser.add_argument("--graphs", type=int, nargs="*", default=[64, 32, 16, 8, 4, 2, 1])
    o = parser.parse_args()
    with torch.device("cuda"):
        model = Model(o).half()
    print(f"weights: {sum(p.numel() * p.element_size() for p in model.parameters())} bytes")
    cache = make_kv_cache(profile_run(model, o), o)
    graphs = capture(model, cache, o.graphs)
    log = []
    for n in o.repeat * o.requests:
        logits = model(torch.zeros(n, dtype=torch.long, device="cuda"), cache, torch.arange(n, device="cuda"))
        if o.keep_logits:
            log.append(logits[-1])
        del logits
    for graph, *_ in graphs.values():
        graph.replay()
    segments = torch.cuda.memory_snapshot()
    print(f"CUDA graphs: {sum(s['total_size'] for s in segments if tuple(s['segment_pool_id']) != (0, 0))} bytes")
    free, total = torch.cuda.mem_get_info()
    print(f"device: {total - free} of {total} bytes, PyTorch {torch.cuda.memory_reserved()}")


if __name__ == "__main__":
    main()
