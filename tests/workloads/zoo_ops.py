# SPDX-License-Identifier: Apache-2.0
"""Operators that ask the libraries for something (sizes, descriptors, counts), each on the CPU and on the
device: results must have the same shapes, types and strides. Prints what disagreed as JSON."""
import json
import warnings

import torch
from torch.nn import functional as F

LINALG = {
    "eigh": torch.linalg.eigh, "eigvalsh": torch.linalg.eigvalsh, "qr": torch.linalg.qr, "cholesky": torch.linalg.cholesky,
    "inv": torch.linalg.inv, "svd": torch.linalg.svd, "lu": torch.linalg.lu, "det": torch.linalg.det, "slogdet": torch.linalg.slogdet,
    "ldl": torch.linalg.ldl_factor, "geqrf": torch.geqrf, "pinv": torch.linalg.pinv, "rank": torch.linalg.matrix_rank,
    "lu_factor": torch.linalg.lu_factor, "cholesky_inverse": torch.cholesky_inverse,
    "solve": lambda a: torch.linalg.solve(a, a), "lstsq": lambda a: torch.linalg.lstsq(a, a).solution,
    "triangular": lambda a: torch.linalg.solve_triangular(a, a, upper=True), "cholesky_solve": lambda a: torch.cholesky_solve(a, a),
    "svdvals": torch.linalg.svdvals, "householder": lambda a: torch.linalg.householder_product(a, a[..., 0, :]),
    "ormqr": lambda a: torch.ormqr(a, a[..., 0, :], a),
}


def matrices(device):
    one = torch.eye(12, dtype=torch.float64).mul(3).add(0.1)
    for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        yield str(dtype), one.to(device, dtype)
        yield str(dtype) + " batch", one.to(device, dtype).expand(3, 12, 12).contiguous()
    yield "large", torch.eye(300).add(0.01).to(device)


def linalg(device):
    for kind, a in matrices(device):
        for name, function in LINALG.items():
            yield f"{name} {kind}", lambda function=function, a=a: function(a)


def fft(device):
    x = torch.randn(2, 30, 49, 16).to(device)
    yield "fft", lambda: torch.fft.fft(x)
    yield "fft of a prime length", lambda: torch.fft.fft(x, n=131)
    yield "rfft2", lambda: torch.fft.rfft2(x)
    yield "irfft2", lambda: torch.fft.irfft2(torch.fft.rfft2(x))
    yield "fftn", lambda: torch.fft.fftn(x)
    yield "double", lambda: torch.fft.ifft2(x.to(torch.complex128))
    yield "stft", lambda: torch.stft(x[0, 0], 16, 4, 16, torch.hann_window(16).to(device), return_complex=True)


def sparse(device):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coo = torch.sparse_coo_tensor(torch.tensor([[0, 1, 2], [2, 0, 1]]), torch.ones(3), (3, 4)).coalesce()
        csr = coo.to_sparse_csr().to(device)
    coo = coo.to(device)
    dense, vector = torch.randn(4, 8).to(device), torch.randn(4).to(device)
    yield "coo mm", lambda: torch.sparse.mm(coo, dense)
    yield "csr mm", lambda: csr @ dense
    yield "csr mv", lambda: csr @ vector
    yield "csr addmm", lambda: torch.addmm(torch.randn(3, 8).to(device), csr, dense)
    yield "sampled addmm", lambda: torch.sparse.sampled_addmm(csr, torch.randn(3, 5).to(device), torch.randn(5, 4).to(device)).values()
    yield "coo backward", lambda: gradient(lambda d: torch.sparse.mm(coo, d), dense)


def gradient(function, *tensors):
    tensors = [t.detach().requires_grad_() for t in tensors]
    out = function(*tensors)
    out = out[0] if isinstance(out, tuple) else out
    return torch.autograd.grad(out.float().sum(), tensors)


def layers(device):
    image = torch.randn(2, 8, 11, 13).to(device)
    for name, weight, kw in (("plain", (6, 8, 3, 3), {}), ("strided", (6, 8, 3, 3), {"stride": 2, "padding": 1}), ("dilated", (6, 8, 3, 3), {"dilation": 2}),
                             ("grouped", (8, 4, 3, 3), {"groups": 2}), ("depthwise", (8, 1, 3, 3), {"groups": 8})):
        w = torch.randn(weight).to(device)
        yield f"conv2d {name}", lambda w=w, kw=kw: gradient(lambda x, w: F.conv2d(x, w, **kw), image, w)
        last = image.to(memory_format=torch.channels_last)
        yield f"conv2d {name} channels last", lambda w=w, kw=kw, x=last: gradient(lambda x, w: F.conv2d(x, w, **kw), x, w)
    yield "conv1d", lambda: gradient(F.conv1d, image[0], torch.randn(3, 11, 3).to(device))
    yield "conv3d", lambda: gradient(F.conv3d, image.unsqueeze(2), torch.randn(3, 8, 1, 3, 3).to(device))
    yield "conv transpose", lambda: gradient(F.conv_transpose2d, image, torch.randn(8, 3, 2, 2).to(device))
    yield "batch norm", lambda: gradient(lambda x: F.batch_norm(x, None, None, training=True), image)
    yield "grid sample", lambda: gradient(lambda x: F.grid_sample(x, torch.zeros(2, 4, 4, 2).to(device), align_corners=True), image)
    yield "pooling", lambda: gradient(lambda x: F.adaptive_avg_pool2d(F.max_pool2d(x, 2), 3), image)
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        for kw in ({}, {"bidirectional": True}, {"bias": False}, {"batch_first": True}, *([{"proj_size": 3}] if kind is torch.nn.LSTM else [])):
            model = kind(8, 6, 2, **kw).to(device)
            yield f"{kind.__name__} {kw}", lambda model=model: (model(torch.randn(5, 4, 8).to(device)), gradient(model, torch.randn(5, 4, 8).to(device)))
    heads = torch.nn.MultiheadAttention(16, 4, batch_first=True).to(device)
    x = torch.randn(2, 7, 16).to(device)
    yield "multihead", lambda: heads(x, x, x)
    for dtype in (torch.float32, torch.bfloat16):
        q = torch.randn(2, 3, 24, 16, dtype=dtype).to(device)
        yield f"attention {dtype}", lambda q=q: gradient(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), q)


def products(device):
    a, b = torch.randn(5, 7, 6).to(device), torch.randn(5, 6, 4).to(device)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.complex64):
        yield f"bmm {dtype}", lambda dtype=dtype: torch.bmm(a.to(dtype), b.to(dtype))
        yield f"mm {dtype}", lambda dtype=dtype: a[0].to(dtype) @ b[0].to(dtype)
        yield f"mv {dtype}", lambda dtype=dtype: a[0].to(dtype) @ b[0, :, 0].to(dtype)
    yield "dot", lambda: a[0, 0] @ b[0, :, 0]
    yield "baddbmm", lambda: torch.baddbmm(torch.zeros(5, 7, 4).to(device), a, b)
    yield "bilinear", lambda: F.bilinear(a, a, torch.randn(3, 6, 6).to(device))
    yield "einsum", lambda: torch.einsum("bij,bjk->bk", a, b)
    yield "norms", lambda: (torch.linalg.norm(a), torch.linalg.norm(a[0], 2), torch.dist(a, a), torch.cdist(a, a))
    yield "random", lambda: (torch.multinomial(torch.ones(9).to(device), 3), torch.randperm(50, device=device), a.bernoulli())
    yield "sorted", lambda: (a.sort(), a.topk(2), a.kthvalue(1), a.cumsum(1), a.median(1), torch.searchsorted(torch.arange(5.0).to(device), a))
    yield "ctc", lambda: gradient(lambda x: F.ctc_loss(x, torch.ones(2, 3, dtype=torch.int32), torch.full((2,), 9, dtype=torch.int32), torch.full((2,), 3, dtype=torch.int32)),
                                  torch.randn(9, 2, 5).log_softmax(2).to(device))
    yield "embedding bag", lambda: gradient(lambda w: F.embedding_bag(torch.zeros(6, dtype=torch.long).to(device), w, torch.tensor([0, 3]).to(device)), torch.randn(9, 4).to(device))


def counted():
    """Where values decide the size: never more than there are, and what is read back makes sense."""
    x = torch.randint(0, 9, (100,), device="cuda")
    assert len(torch.unique(x)) <= 100 and torch.unique(x, return_inverse=True)[1].shape == x.shape
    assert len(torch.nonzero(x)) <= 100 and len(x[x > 3]) <= 100
    assert torch.bincount(x).numel() <= 100 and torch.bincount(x, minlength=12).numel() >= 12
    assert torch.histc(x.float(), 10).shape == (10,)
    assert torch.tensor([5, 7], device="cuda").tolist() == [5, 7]
    if torch.cuda.get_device_capability() >= (8, 9):
        a, one = torch.randn(32, 64, device="cuda").to(torch.float8_e4m3fn), torch.ones((), device="cuda")
        assert torch._scaled_mm(a, a.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16).shape == (32, 32)
    assert torch._int_mm(torch.ones(32, 32, device="cuda", dtype=torch.int8), torch.ones(32, 32, device="cuda", dtype=torch.int8)).shape == (32, 32)
    if hasattr(torch, "_grouped_mm"):
        a, b = torch.randn(64, 32, device="cuda", dtype=torch.bfloat16), torch.randn(4, 32, 64, device="cuda", dtype=torch.bfloat16)
        offsets = torch.tensor([16, 32, 48, 64], device="cuda", dtype=torch.int32)
        assert torch._grouped_mm(a, b, offs=offsets).shape == (64, 64)
    for driver in ("gesvd", "gesvdj", "gesvda"):
        assert torch.linalg.svd(torch.randn(90, 40, device="cuda"), full_matrices=False, driver=driver)[1].shape == (40,)


def shape_of(result):
    if torch.is_tensor(result):
        return [list(result.shape), str(result.dtype)]
    if isinstance(result, (tuple, list)):
        return [shape_of(r) for r in result if r is not None]
    return repr(type(result))


def answers(device):
    for family in (linalg, fft, sparse, layers, products):
        for name, function in family(device):
            try:
                yield f"{family.__name__}: {name}", shape_of(function())
            except Exception as error:  # is compared as well: what the CPU refuses, the device may refuse
                yield f"{family.__name__}: {name}", f"{type(error).__name__}: {error}"[:300]


def main():
    torch.manual_seed(0)
    cpu, cuda = dict(answers("cpu")), dict(answers("cuda"))
    failed = {name: [cpu[name], cuda.get(name)] for name in cpu if not isinstance(cpu[name], str) and cpu[name] != cuda.get(name)}
    compared = sum(not isinstance(said, str) for said in cpu.values())
    counted()
    torch.cuda.synchronize()
    print(json.dumps({"compared": compared, "refused": [n for n in cpu if isinstance(cpu[n], str)], "failed": failed}), flush=True)
