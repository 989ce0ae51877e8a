# SPDX-License-Identifier: Apache-2.0
"""operators.py OUT : operators on small tensors, on the device and on the CPU; what differs, as JSON."""
import json
import sys

import torch as T
import torch.nn.functional as F

T.manual_seed(0)
cases = []  # (group, name, fn, args)


def case(group, name, fn, *args):
    cases.append((group, name, fn, args))

def make(dtype, *shape, low=-9, high=10):
    if dtype is T.bool:
        return T.randint(0, 2, shape).bool()
    if dtype is T.uint8:
        return T.randint(0, 20, shape).to(dtype)
    x = T.randint(low, high, shape)
    return x.to(dtype) if not dtype.is_floating_point else (x.to(T.float32) + T.rand(shape)).to(dtype)


INTS = [T.uint8, T.int32, T.int64]
FLOATS = [T.float32, T.float64, T.float16, T.bfloat16]
ALL = [T.bool] + INTS + FLOATS
short = lambda d: str(d).split(".")[1]

# ---- element-wise
for d in ALL:
    x, y = make(d, 5, 7), make(d, 5, 7)
    nz = T.where(y == 0, T.ones_like(y), y)
    s = short(d)
    case("compare", f"eq {s}", lambda a, b: a == b, x, y)
    case("compare", f"ne {s}", lambda a, b: a != b, x, y)
    case("compare", f"lt {s}", lambda a, b: a < b, x, y)
    case("compare", f"ge {s}", lambda a, b: a >= b, x, y)
    case("compare", f"eq scalar {s}", lambda a: a == 1, x)
    case("compare", f"gt scalar {s}", lambda a: a > 3, x)
    case("logical", f"and {s}", T.logical_and, x, y)
    case("logical", f"or {s}", T.logical_or, x, y)
    case("logical", f"xor {s}", T.logical_xor, x, y)
    case("logical", f"not {s}", T.logical_not, x)
    case("choose", f"where {s}", lambda a, b: T.where(a > b, a, b), x, y)
    case("choose", f"where scalar {s}", lambda a: T.where(a == 1, a, 0), x)
    case("choose", f"masked_fill {s}", lambda a: a.masked_fill(a == 1, 0), x)
    case("choose", f"maximum {s}", T.maximum, x, y)
    case("choose", f"minimum {s}", T.minimum, x, y)
    case("copy", f"clone {s}", lambda a: a.clone(), x)
    case("copy", f"transpose {s}", lambda a: a.t().contiguous(), x)
    case("copy", f"strided {s}", lambda a: a[:, ::2].contiguous(), x)
    case("copy", f"expand {s}", lambda a: a[:, :1].expand(5, 9).contiguous(), x)
    case("copy", f"assign {s}", lambda a, b: a.clone().narrow(1, 2, 3).copy_(b.narrow(1, 0, 3)), x, y)
    case("copy", f"big {s}", lambda a: a.clone(), make(d, 4096))
    for e in ALL:
        if e is not d:
            case("cast", f"{s} to {short(e)}", lambda a, e=e: a.to(e), x.abs() if e is T.uint8 and d is not T.bool else x)
    if d is not T.bool:
        case("arithmetic", f"add {s}", lambda a, b: a + b, x, y)
        case("arithmetic", f"add alpha {s}", lambda a, b: T.add(a, b, alpha=2), x, y)
        case("arithmetic", f"sub {s}", lambda a, b: a - b, x, y)
        case("arithmetic", f"rsub {s}", lambda a: 3 - a, x)
        case("arithmetic", f"mul {s}", lambda a, b: a * b, x, y)
        case("arithmetic", f"mul scalar {s}", lambda a: a * 3, x)
        case("arithmetic", f"div {s}", lambda a, b: a / b, x, nz)
        case("arithmetic", f"div scalar {s}", lambda a: a / 4, x)
        case("arithmetic", f"floor_div {s}", lambda a, b: a // b, x, nz)
        case("arithmetic", f"floor_div scalar {s}", lambda a: a // 3, x)
        case("arithmetic", f"trunc_div {s}", lambda a, b: T.div(a, b, rounding_mode="trunc"), x, nz)
        case("arithmetic", f"remainder {s}", lambda a, b: a % b, x, nz)
        case("arithmetic", f"remainder scalar {s}", lambda a: a % 3, x)
        case("arithmetic", f"fmod {s}", T.fmod, x, nz)
        case("arithmetic", f"square {s}", lambda a: a ** 2, x)
        case("arithmetic", f"neg {s}", lambda a: -a, x)
        case("arithmetic", f"abs {s}", T.abs, x)
        case("arithmetic", f"sign {s}", T.sign, x)
        case("arithmetic", f"clamp {s}", lambda a: a.clamp(1, 5), x)
        case("arithmetic", f"clamp min {s}", lambda a: a.clamp(min=2), x)
        case("arithmetic", f"addcmul {s}", lambda a, b: T.addcmul(a, a, b, value=2), x, y)
        case("arithmetic", f"strided add {s}", lambda a, b: a.t() + b.t()[:, :1], x, y)
        case("arithmetic", f"0-d {s}", lambda a, b: a[0, 0] + b, x, y)
        case("compare", f"isclose {s}", T.isclose, x, y)
    if d in INTS or d is T.bool:
        case("bitwise", f"and {s}", lambda a, b: a & b, x, y)
        case("bitwise", f"or {s}", lambda a, b: a | b, x, y)
        case("bitwise", f"xor {s}", lambda a, b: a ^ b, x, y)
        case("bitwise", f"not {s}", lambda a: ~a, x)
    if d in INTS:
        case("bitwise", f"shift left {s}", lambda a: a.abs() << 2, x)
        case("bitwise", f"shift right {s}", lambda a: a >> 1, x)
        case("bitwise", f"and scalar {s}", lambda a: a & 3, x)
    if d in FLOATS:
        p = x.abs() / 20 + 0.01
        case("compare", f"isnan {s}", T.isnan, T.cat([x, x / 0 * 0]))
        case("compare", f"isfinite {s}", T.isfinite, T.cat([x, y / 0]))
        case("compare", f"isinf {s}", T.isinf, T.cat([x, y / 0]))
        for f in ("floor", "ceil", "round", "trunc", "frac", "exp", "sigmoid", "tanh", "sin", "cos", "relu"):
            case("functions", f"{f} {s}", getattr(T, f), p * 3 if f == "exp" else x)
        for f in ("log", "log2", "log1p", "sqrt", "rsqrt", "reciprocal"):
            case("functions", f"{f} {s}", getattr(T, f), p)
        case("functions", f"pow {s}", T.pow, p, y)
        case("functions", f"pow scalar {s}", lambda a: a ** 1.5, p)
        case("functions", f"nan_to_num {s}", T.nan_to_num, x / 0)
        case("functions", f"gelu {s}", F.gelu, x)
        case("functions", f"silu {s}", F.silu, x)
        case("functions", f"lerp {s}", lambda a, b: T.lerp(a, b, 0.5), x, y)
        case("functions", f"softmax {s}", lambda a: a.softmax(-1), x)
        case("functions", f"log_softmax {s}", lambda a: a.log_softmax(-1), x)
        case("functions", f"softmax dim 0 {s}", lambda a: a.softmax(0), x)
        case("functions", f"cross_entropy {s}", lambda a: F.cross_entropy(a, T.arange(5, device=a.device)), x)
        case("reduce", f"norm {s}", lambda a: a.norm(), x)
        case("reduce", f"mean {s}", lambda a: a.mean(), x)
        case("reduce", f"mean dim {s}", lambda a: a.mean(1), x)
        case("reduce", f"var {s}", lambda a: a.var(), x)
        case("reduce", f"std dim {s}", lambda a: a.std(0), x)
        case("reduce", f"logsumexp {s}", lambda a: a.logsumexp(1), x)

# ---- reductions
for d in ALL:
    s = short(d)
    x, big, long = make(d, 5, 7), make(d, 64, 64, low=-3, high=4), make(d, 4096)
    if d in (T.float16, T.bfloat16):
        long = (T.arange(4096) % 97).to(d)
        big = long.view(64, 64)
    for n, v in (("", x), (" 64x64", big)):
        for dim in (None, 0, 1):
            k = {} if dim is None else {"dim": dim}
            c = f" dim {dim}" if dim is not None else ""
            case("reduce", f"sum{n}{c} {s}", lambda a, k=k: a.double().sum(**k) if a.dtype in (T.float16, T.bfloat16) else a.sum(**k), v)
            case("reduce", f"any{n}{c} {s}", lambda a, k=k: (a > 5).any(**k), v)
            case("reduce", f"all{n}{c} {s}", lambda a, k=k: (a > -2).all(**k), v)
            case("max and min", f"max{n}{c} {s}", lambda a, k=k: a.max(**k), v)
            case("max and min", f"min{n}{c} {s}", lambda a, k=k: a.min(**k), v)
            if d is not T.bool:
                case("max and min", f"argmax{n}{c} {s}", lambda a, k=k: a.argmax(**k), v)
                case("max and min", f"argmin{n}{c} {s}", lambda a, k=k: a.argmin(**k), v)
                case("max and min", f"amax{n}{c} {s}", lambda a, k=k: a.amax(**k), v)
    case("reduce", f"prod {s}", lambda a: a[:1, :4].prod(), x)
    case("reduce", f"count_nonzero {s}", T.count_nonzero, x)
    if d is not T.bool:
        case("max and min", f"aminmax {s}", lambda a: list(a.aminmax()), x)
    for n, v in (("", x), (" 4096", long)):
        case("sort", f"sort{n} {s}", lambda a: a.sort(stable=True), v)
        case("sort", f"sort descending{n} {s}", lambda a: a.sort(descending=True, stable=True), v)
        case("sort", f"argsort values{n} {s}", lambda a: a.flatten()[a.flatten().argsort()], v)
        if d is not T.bool:
            case("sort", f"topk{n} {s}", lambda a: a.topk(3)[0], v)
            case("sort", f"topk smallest{n} {s}", lambda a: a.topk(3, largest=False)[0], v)
            case("sort", f"topk index{n} {s}", lambda a: a.gather(-1, a.topk(3)[1]), v)
        case("scan", f"cumsum{n} {s}", lambda a: a.double().cumsum(0) if a.is_floating_point() else a.cumsum(0), v)
        case("sparse", f"nonzero{n} {s}", T.nonzero, v)
        case("sparse", f"unique{n} {s}", T.unique, v)
        case("sparse", f"unique inverse{n} {s}", lambda a: T.unique(a, return_inverse=True, return_counts=True), v)
        case("sparse", f"unique_consecutive{n} {s}", lambda a: T.unique_consecutive(a.flatten(), return_inverse=True, return_counts=True), v)
        case("sparse", f"masked_select{n} {s}", lambda a: a[a > 1], v)
    case("sort", f"sort 64x64 {s}", lambda a: a.sort(dim=1, stable=True), big)
    case("sort", f"sort 3x1000 {s}", lambda a: a[:3000].view(3, 1000).sort(dim=1, stable=True), long)
    case("sort", f"sort 300 {s}", lambda a: a[:300].sort(stable=True), long)
    case("sort", f"sort dim 0 {s}", lambda a: a.sort(dim=0, stable=True), big)
    case("scan", f"cumsum dim 1 {s}", lambda a: a.double().cumsum(1) if a.is_floating_point() else a.cumsum(1), big)
    case("scan", f"cumsum dim 0 {s}", lambda a: a.double().cumsum(0) if a.is_floating_point() else a.cumsum(0), big)
    case("scan", f"cumprod {s}", lambda a: a.flatten()[:5].cumprod(0), x)
    if d is not T.bool:
        case("scan", f"cummax {s}", lambda a: a.cummax(0)[0], x)
    # ---- moving
    i1, i2 = T.tensor([3, 0, 4, 1]), T.tensor([6, 2, 2, 0])
    g = T.randint(0, 5, (4, 7))
    case("move", f"cat {s}", lambda a: T.cat([a, a]), x)
    case("move", f"cat 1 {s}", lambda a: T.cat([a, a[:, :2]], 1), x)
    case("move", f"stack {s}", lambda a: T.stack([a, a], 1), x)
    case("move", f"flip {s}", lambda a: a.flip(0), x)
    case("move", f"flip both {s}", lambda a: a.flip(0, 1), x)
    case("move", f"roll {s}", lambda a: a.roll(2, 1), x)
    case("move", f"roll all {s}", lambda a: a.roll(3), x)
    case("move", f"repeat {s}", lambda a: a.repeat(2, 3), x)
    case("move", f"repeat_interleave {s}", lambda a: a.repeat_interleave(2, 0), x)
    case("move", f"repeat_interleave counts {s}", lambda a, i: a[0, :4].repeat_interleave(i), x, i1)
    case("move", f"tril {s}", T.tril, x)
    case("move", f"triu 1 {s}", lambda a: a.triu(1), x)
    case("move", f"diag {s}", lambda a: T.diag(a[0]), x)
    case("move", f"pad {s}", lambda a: F.pad(a, (1, 2)), x)
    case("index", f"index {s}", lambda a, i: a[i], x, i1)
    case("index", f"index two {s}", lambda a, i, j: a[i, j], x, i1, i2)
    case("index", f"index column {s}", lambda a, j: a[:, j], x, i2)
    case("index", f"index negative {s}", lambda a, j: a[:, j - 7], x, i2)
    case("index", f"index_select {s}", lambda a, i: a.index_select(0, i), x, i1)
    case("index", f"index_select 1 {s}", lambda a, i: a.index_select(1, i), x, i2)
    case("index", f"index_select 1-d {s}", lambda a, i: a[0].index_select(0, i), x, i2)
    case("index", f"take {s}", lambda a, i: a.take(i), x, i1)
    case("index", f"gather {s}", lambda a, g: a.gather(0, g), x, g)
    case("index", f"index_put {s}", lambda a, i: a.clone().index_put((i,), a[0]), x, i1)
    case("index", f"index_put scalar {s}", lambda a, i: a.clone().index_put((i,), a[0, 0]), x, i1)
    case("index", f"setitem mask {s}", lambda a: (b := a.clone()).__setitem__(b == 1, 0) or b, x)
    case("index", f"scatter {s}", lambda a, g: a.scatter(0, g[:1], a), x, g)
    case("index", f"scatter value {s}", lambda a, g: a.scatter(0, g, 1), x, g)
    case("index", f"masked_scatter {s}", lambda a: a.masked_scatter(a > 1, a), x)
    case("index", f"index_copy {s}", lambda a, i: a.index_copy(0, i, a[:4]), x, i1)
    case("index", f"index_fill {s}", lambda a, i: a.index_fill(0, i, 1), x, i1)
    if d is not T.bool:
        case("index", f"scatter_add {s}", lambda a, g: a.scatter_add(0, g[:2], a), x, g)
        case("index", f"scatter_reduce {s}", lambda a, g: a.scatter_reduce(0, g[:2], a, "amax"), x, g)
        case("index", f"index_add {s}", lambda a, i: a.index_add(0, i, a[:4]), x, i1)
        case("index", f"index_put add {s}", lambda a, i: a.clone().index_put((i,), a[:4], accumulate=True), x, T.tensor([1, 1, 0, 3]))
        case("make", f"arange {s}", lambda a: T.arange(3, 40, 2, device=a.device, dtype=a.dtype), x)
        case("sort", f"searchsorted {s}", lambda a, b: T.searchsorted(a.flatten().sort()[0], b), x, make(d, 5))
        case("sort", f"bucketize {s}", lambda a: T.bucketize(a, T.tensor([1, 3, 5], device=a.device).to(a.dtype)), x)
        case("sort", f"isin {s}", lambda a: T.isin(a, a[0, :2]), x)
    case("make", f"full {s}", lambda a: T.full((4, 5), 1, device=a.device, dtype=a.dtype), x)
    case("make", f"zeros_like {s}", T.zeros_like, x)
    case("make", f"eye {s}", lambda a: T.eye(5, device=a.device, dtype=a.dtype), x)
    if d in FLOATS:
        case("make", f"linspace {s}", lambda a: T.linspace(0, 1, 11, device=a.device, dtype=a.dtype), x)
        case("index", f"embedding {s}", lambda a, i: F.embedding(i, a), x, i1)
ix = T.randint(0, 9, (40,))
for d in (T.uint8, T.int32, T.int64):
    case("count", f"bincount {short(d)}", T.bincount, ix.to(d))
    case("count", f"bincount minlength {short(d)}", lambda a: T.bincount(a, minlength=20), ix.to(d))
case("count", "bincount weights", lambda a, w: T.bincount(a, w), ix, T.rand(40))
case("count", "histc", lambda a: T.histc(a, 5, 0, 9), ix.float())
case("count", "one_hot", F.one_hot, ix)
case("count", "one_hot classes", lambda a: F.one_hot(a, 12), ix)
case("make", "randperm is a permutation", lambda a: T.randperm(50, device=a.device).sort()[0], ix)
case("sparse", "unique dim", lambda a: T.unique(a, dim=0), T.randint(0, 2, (20, 2)))
case("move", "cartesian", lambda a: T.cartesian_prod(a, a), ix[:5])
case("move", "meshgrid", lambda a: T.stack(T.meshgrid(a, a, indexing="ij")), ix[:5])
case("sort", "kthvalue", lambda a: a.kthvalue(3)[0], ix)
case("sort", "median", lambda a: a.median(), ix)
case("sort", "mode", lambda a: a.mode()[0], ix)

# ---- as other programs do
def gather_states(t):
    s = T.cat([t, t]).sum(0)
    return s.max(), T.stack([t, t]).max(dim=0), t.max(dim=1)
case("programs", "metric states", gather_states, T.rand(2, 3))
case("programs", "mean pool", lambda b, x: T.zeros(int(b.max()) + 1, 4, device=b.device).index_add_(0, b, x)
     / T.bincount(b, minlength=int(b.max()) + 1)[:, None], T.tensor([0, 0, 1, 1, 1, 2]), T.rand(6, 4))
case("programs", "self loops", lambda e: e[:, e[0] != e[1]], T.tensor([[0, 1, 2, 2], [0, 2, 2, 1]]))
def routing(x):
    w, i = x.softmax(-1).topk(2)
    w = w / w.sum(-1, keepdim=True)
    m = F.one_hot(i, 4).permute(2, 1, 0)
    hit = (m.sum(dim=(-1, -2)) > 0).nonzero()
    return [w, i] + [T.cat([v for v in T.where(m[int(e)])]) for e in hit]
case("programs", "routing", routing, T.rand(12, 4))
def moe_sort(x):
    i = x.topk(2)[1].flatten()
    o = i.argsort(stable=True)
    return o, i[o], T.bincount(i, minlength=4).cumsum(0), T.histc(i.float(), 4, 0, 3)
case("programs", "routing by sort", moe_sort, T.rand(12, 4))
def mask4d(m):
    e = m[:, None, None, :].expand(2, 1, 6, 6).to(T.float32)
    inv = 1.0 - e
    return inv.masked_fill(inv.to(T.bool), T.finfo(T.float32).min), (m == 0).any(), m.cumsum(-1), (m.long().cumsum(-1) - 1).masked_fill_(m == 0, 1)
case("programs", "attention mask", mask4d, T.tensor([[0, 0, 1, 1, 1, 1], [1] * 6]))
def unfinished(ids):
    u = T.ones(2, dtype=T.long, device=ids.device)
    n = []
    for k in range(ids.shape[1]):
        u = u & ~T.isin(ids[:, k], T.tensor([2], device=ids.device))
        u = u.long()
        n.append(int(u.max()))
        if u.max() == 0:
            break
    return T.tensor(n), ids.new_ones(2, k)
case("programs", "generate", unfinished, T.tensor([[5, 2, 1, 2], [4, 4, 2, 1]]))
def boxes(b, s):
    keep = (b[:, 2] - b[:, 0] >= 1) & (b[:, 3] - b[:, 1] >= 1)
    k = T.where(keep)[0]
    b, s = b[k], s[k]
    o = s.argsort(descending=True)
    b = b[o].clamp(min=0, max=10)
    lt, rb = T.max(b[:, None, :2], b[:, :2]), T.min(b[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    return b, wh[..., 0] * wh[..., 1], (s > 0.5).nonzero()[:, 0]
bb = T.rand(20, 4) * 5
bb[:, 2:] += bb[:, :2]
case("programs", "boxes", boxes, bb, T.rand(20))
def packed(lengths):
    l, o = lengths.sort(descending=True)
    cu = F.pad(l.cumsum(0, dtype=T.int32), (1, 0))
    return l, o, cu, int(l.max()), T.arange(int(l.max()), device=l.device)[None] < l[:, None]
case("programs", "lengths", packed, T.tensor([3, 5, 2, 4]))
def unpad(m):
    i = T.nonzero(m.flatten(), as_tuple=False).flatten()
    s = m.sum(-1, dtype=T.int32)
    return i, s, s.max().item(), F.pad(T.cumsum(s, 0, dtype=T.int32), (1, 0))
def image_grids(g):
    """Vision encoders: the patches of each image, from its height and width in patches."""
    n = (g.prod(-1) // 4).tolist()
    return n, [len(p) for p in T.split(T.zeros(sum(n), device=g.device), n)], g.prod(0), int(g.prod())
case("programs", "image grids", image_grids, T.tensor([[1, 16, 24], [2, 8, 8]]))
case("programs", "unpad", unpad, T.tensor([[1, 1, 0], [1, 0, 0]]))
def coalesce(e):
    k = e[0] * 5 + e[1]
    k, p = k.sort(stable=True)
    m = T.ones_like(k, dtype=T.bool)
    m[1:] = k[1:] > k[:-1]
    return e[:, p][:, m]
case("programs", "coalesce", coalesce, T.tensor([[3, 0, 1, 0, 3], [1, 2, 0, 2, 1]]))
def degree(e):
    d = T.zeros(5, device=e.device).scatter_add_(0, e[0], T.ones(e.shape[1], device=e.device))
    r = d.pow(-0.5)
    r[r == float("inf")] = 0
    return d, r[e[0]] * r[e[1]]
case("programs", "degree", degree, T.tensor([[3, 0, 1, 0, 3], [1, 2, 0, 2, 1]]))
case("programs", "accuracy", lambda x, y: [(x.argmax(1) == y).sum().item(), (x.topk(2)[1] == y[:, None]).any(1).float().mean()], T.rand(10, 4), T.randint(0, 4, (10,)))
case("programs", "confusion", lambda x, y: T.bincount(x * 4 + y, minlength=16).view(4, 4), T.randint(0, 4, (30,)), T.randint(0, 4, (30,)))
def sampling(x):
    s, i = x.sort(descending=True)
    c = s.softmax(-1).cumsum(-1)
    r = c > 0.8
    r[..., 1:] = r[..., :-1].clone()
    r[..., 0] = 0
    m = r.scatter(1, i, r)
    return x.masked_fill(m, -float("inf")), x < x.topk(3)[0][..., -1, None]
case("programs", "top p", sampling, T.randn(2, 30))
def labels(y):
    y = y.clone()
    y[y == 0] = -100
    sh = y.new_zeros(y.shape)
    sh[:, 1:] = y[:, :-1].clone()
    return sh, (y != -100).sum(), sh.masked_fill(sh == -100, 7)
case("programs", "shifted labels", labels, T.randint(0, 4, (3, 6)))

def flat(v):
    if isinstance(v, T.Tensor):
        return [v.cpu()]
    if isinstance(v, (tuple, list)):
        return [t for w in v for t in flat(w)]
    return [T.tensor(v)]

def same(a, b):
    if len(a) != len(b):
        return "count"
    for x, y in zip(a, b):
        if x.shape != y.shape:
            return f"shape {tuple(y.shape)} for {tuple(x.shape)}"
        if x.dtype != y.dtype:
            return f"dtype {y.dtype} for {x.dtype}"
        low = x.dtype in (T.float16, T.bfloat16)
        if x.is_floating_point():
            if not T.allclose(x.double(), y.double(), rtol=2e-2 if low else 1e-4, atol=1e-2 if low else 1e-5, equal_nan=True):
                return f"value {y.flatten()[:6].tolist()} for {x.flatten()[:6].tolist()}"
        elif not T.equal(x, y):
            return f"value {y.flatten()[:6].tolist()} for {x.flatten()[:6].tolist()}"
    return None

def main():
    table, bad = {}, []
    for group, name, fn, args in cases:
        try:
            want = flat(fn(*args))
        except (RuntimeError, NotImplementedError):  # the CPU does not have it in this type
            continue
        try:
            why = same(want, flat(fn(*[a.cuda() for a in args])))
        except (RuntimeError, ValueError, IndexError) as e:
            why = f"{type(e).__name__}: {str(e)[:90]}"
        right, n = table.get(group, (0, 0))
        table[group] = (right + (why is None), n + 1)
        if why:
            bad.append((group, name, why))
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"table": table, "bad": bad}, file)


main()
