# SPDX-License-Identifier: Apache-2.0
"""What cuDNN asks for. A line for each convolution: "conv NUMBERS FORM images inputs outputs size filter stride groups", then bytes of workspace
forward, for the input's gradient and for the filter's. A line for each recurrent network: its shape, then every request of the two passes, of which
the last two forward are workspace and reserve. tests/data/cudnn-h100.txt is what an H100 says (torch 2.11.0+cu130, cuDNN 9.19)."""
import torch

NUMBERS = {"tf32": torch.float32, "bf16": torch.bfloat16}
SIZES = (8, 32), (32, 56), (4, 128)  # images, their width and height
CHANNELS = (3, 64), (1, 4), (4, 1), (64, 64), (64, 256), (48, 40), (320, 320)
FILTERS = (1, 1), (3, 1), (7, 2)  # width and height, stride
GROUPED = [(8, 64, 64, 32, 3, 1, 64), (32, 96, 96, 56, 3, 1, 96), (8, 64, 64, 32, 3, 1, 4)]
SHAPES = [(n, c, k, size, r, stride, 1) for n, size in SIZES for c, k in CHANNELS for r, stride in FILTERS] + GROUPED
NETWORKS = (512, 1024, 2, 64, 128, False), (128, 256, 1, 16, 8, False), (256, 512, 3, 32, 50, True), (64, 128, 1, 128, 200, True)


class Requests:
    """Bytes of PyTorch's requests."""

    def __enter__(self):
        torch.cuda.memory._record_memory_history(context=None, max_entries=10000)
        return self

    def __call__(self):
        return [e["size"] for e in torch.cuda.memory._snapshot()["device_traces"][0] if e["action"] == "alloc"]

    def __exit__(self, *error):
        torch.cuda.memory._record_memory_history(enabled=None)


def beside_the_results(run):
    """Bytes of the requests that are none of the results."""
    with Requests() as requests:
        out = [t for t in run() if t is not None]
        return sum(requests()) - sum(t.nbytes for t in out)


def convolution(kind, last, shape):
    n, c, k, size, r, stride, groups = shape
    form = torch.channels_last if last else torch.contiguous_format
    x = torch.randn(n, c, size, size, device="cuda", dtype=NUMBERS[kind]).to(memory_format=form)
    w = torch.randn(k, c // groups, r, r, device="cuda", dtype=NUMBERS[kind]).to(memory_format=form)
    rest = [stride] * 2, [r // 2] * 2, [1, 1], False, [0, 0], groups
    forward = lambda: [torch.ops.aten.convolution(x, w, None, *rest)]  # noqa: E731
    dy = torch.randn_like(forward()[0])
    backward = [lambda m=m: torch.ops.aten.convolution_backward(dy, x, w, None, *rest, m) for m in ([True, False, False], [False, True, False])]
    print("conv", kind, "last" if last else "first", *shape, *map(beside_the_results, (forward, *backward)), flush=True)


def network(cell, kind, shape):
    inputs, hidden, layers, batch, length, both = shape
    net = getattr(torch.nn, cell)(inputs, hidden, layers, bidirectional=both, device="cuda", dtype=NUMBERS[kind])
    x = torch.randn(length, batch, inputs, device="cuda", dtype=NUMBERS[kind])
    with Requests() as requests:
        out = net(x)[0]
        forward = requests()
        out.sum().backward()
        print("rnn", cell, kind, *shape, "forward", *forward, "backward", *requests()[len(forward):], flush=True)


def main():
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = True
    with torch.no_grad():
        for kind in NUMBERS:
            for last in (False, True):
                for shape in SHAPES:
                    convolution(kind, last, shape)
    for cell in ("LSTM", "GRU", "RNN"):
        for kind in NUMBERS:
            for shape in NETWORKS:
                network(cell, kind, shape)


main()
