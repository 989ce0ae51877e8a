# SPDX-License-Identifier: Apache-2.0
"""Pairs of programs: as somebody wrote it, and with the advice followed by an edit (AFTER). Each is run by its name:
python cases.py NAME [after] (pairs.py)."""
import contextlib
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from pairs import AFTER, case, run


class Block(nn.Module):
    def __init__(self, width, eager=False):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.eager = eager

    def attend(self, q, k, v):
        if not self.eager:
            return F.scaled_dot_product_attention(q, k, v)
        scores = torch.matmul(q, k.transpose(-2, -1)) / q.shape[-1] ** 0.5
        return torch.matmul(scores.softmax(-1), v)

    def forward(self, x):
        b, s, w = x.shape
        q, k, v = (t.view(b, s, 8, w // 8).transpose(1, 2) for t in self.qkv(self.ln1(x)).chunk(3, -1))
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(b, s, w))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Gpt(nn.Module):
    def __init__(self, width=512, depth=6, vocab=4096, remat=False, eager=False):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Block(width, eager) for _ in range(depth))
        self.head = nn.Linear(width, vocab, bias=False)
        self.remat = remat

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.remat else layer(x)
        return self.head(x)


def mlp(width=2048, depth=8):
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)], nn.Linear(width, 10)).cuda()


def tokens(batch=8, length=512, vocab=4096):
    return torch.randint(vocab, (batch, length), device="cuda")


def train(model, make, loss_of, optimizer, steps=3):
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model(make())).backward()
        optimizer.step()


def next_token(logits, target):
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), target.view(-1))


@case("checkpoint")
def checkpoint_gpt():
    model = Gpt(remat=AFTER).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        t = tokens()
        loss = next_token(model(t), t)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("checkpoint")
def checkpoint_cnn():
    class Stage(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(64, 64, 3, padding=1)
            self.n, self.m = nn.BatchNorm2d(64), nn.BatchNorm2d(64)

        def forward(self, x):
            return F.relu(x + self.m(self.b(F.relu(self.n(self.a(x))))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inp = nn.Conv2d(3, 64, 3, padding=1)
            self.stages = nn.ModuleList(Stage() for _ in range(8))
            self.out = nn.Linear(64, 10)

        def forward(self, x):
            x = self.inp(x)
            for s in self.stages:
                x = checkpoint(s, x, use_reentrant=False) if AFTER else s(x)
            return self.out(x.mean((2, 3)))

    model = Net().cuda()
    train(model, lambda: torch.randn(16, 3, 96, 96, device="cuda"), lambda y: y.square().mean(), torch.optim.Adam(model.parameters()))


@case("fused_optimizer")
def fused_adamw():
    model = mlp()
    train(model, lambda: torch.randn(32, 2048, device="cuda"), lambda y: y.sum(), torch.optim.AdamW(model.parameters(), fused=AFTER or None))


@case("fused_optimizer")
def fused_sgd():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01, fused=AFTER or None)
    train(model, lambda: torch.randn(32, 2048, device="cuda"), lambda y: y.sum(), optimizer)


@case("foreach_off")
def rmsprop():
    model = mlp()
    optimizer = torch.optim.RMSprop(model.parameters(), foreach=False if AFTER else None)
    train(model, lambda: torch.randn(32, 2048, device="cuda"), lambda y: y.sum(), optimizer)


@case("set_to_none")
def zeroed_gradients():
    model = mlp(depth=12)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad(set_to_none=AFTER)
        model(torch.randn(8192, 2048, device="cuda")).sum().backward()
        optimizer.step()


@case("set_to_none")
def zeroed_by_the_model():
    model = Gpt(depth=4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        t = tokens()
        next_token(model(t), t).backward()
        optimizer.step()
        model.zero_grad(set_to_none=AFTER)


@case("overlap")
def overlapping_steps():
    def step():
        t = tokens()
        logits = model(t)
        loss = next_token(logits, t)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return {"loss": loss, "logits": logits.softmax(-1)}

    model = Gpt(depth=2, vocab=16384).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        result = step()
        print(result["loss"].item())
        if AFTER:
            del result


@case("late_del")
def held_outputs():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Gpt(depth=2, vocab=16384)

        def forward(self, t):
            logits = self.net(t)
            return {"logits": logits, "scaled": logits * 0.5}

    model = Twice().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        t = tokens()
        out = model(t)
        loss = next_token(out["scaled"], t)
        if AFTER:
            del out
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("unused")
def labels_of_a_teacher():
    """Computed once, before the training; the teacher stays under its name."""
    teacher = mlp(depth=12)
    data = torch.randn(8192, 2048)
    with torch.no_grad():
        labels = teacher(data.cuda()).argmax(1)
    if AFTER:
        del teacher
    model = mlp(depth=6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for part in range(4):
        rows = slice(part * 2048, part * 2048 + 2048)
        optimizer.zero_grad()
        F.cross_entropy(model(data[rows].cuda()), labels[rows]).backward()
        optimizer.step()


@case("unused")
def models_of_folds():
    """Trainers whose callbacks refer to them stay until the garbage collector comes."""
    class Trainer:
        def __init__(self):
            self.model, self.callback = mlp(width=1024, depth=4), self.report
            self.optimizer = torch.optim.AdamW(self.model.parameters(), fused=True)

        def report(self):
            return self.model

    import gc
    gc.disable()
    for _ in range(3):
        trainer = Trainer()
        for _ in range(4):
            trainer.optimizer.zero_grad()
            trainer.model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
            trainer.optimizer.step()
        trainer.optimizer.zero_grad()
        if AFTER:
            del trainer
            gc.collect()


@case("held")
def features_for_a_report():
    """A pass without gradients; its widest result is read once, and a local variable keeps it while the next network trains."""
    encoder, head = mlp(width=1024, depth=4), nn.Sequential(nn.Linear(10, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    with torch.no_grad():
        wide = encoder[:4](torch.randn(65536, 1024, device="cuda"))
        small = encoder[4:](wide)
    print(wide.abs().mean().item())
    if AFTER:
        del wide
    for _ in range(4):
        optimizer.zero_grad()
        head(small.repeat(2, 1)).square().mean().backward()
        optimizer.step()


@case("kept")
def predictions_with_graphs():
    model = mlp(width=1024)
    seen = []
    for _ in range(12):
        y = model(torch.randn(2048, 1024, device="cuda"))
        seen.append(y.detach().cpu() if AFTER else y)
        del y


@case("kept")
def running_total():
    model = mlp(width=1024)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    features = []
    for _ in range(12):
        optimizer.zero_grad()
        x = torch.randn(4096, 1024, device="cuda")
        hidden = model[:4](x)
        features.append(hidden.detach().cpu() if AFTER else hidden.detach())
        model[4:](hidden).sum().backward()
        optimizer.step()


@case("offload_state")
def state_on_the_host():
    model = mlp()
    params = list(model.parameters())
    if not AFTER:
        optimizer = torch.optim.Adam(params)
        return train(model, lambda: torch.randn(32, 2048, device="cuda"), lambda y: y.sum(), optimizer)
    copies = [p.detach().cpu() for p in params]
    optimizer = torch.optim.Adam(copies)
    for _ in range(3):
        model(torch.randn(32, 2048, device="cuda")).sum().backward()
        for p, c in zip(params, copies):
            c.grad, p.grad = p.grad.cpu(), None
        optimizer.step()
        for p, c in zip(params, copies):
            p.data.copy_(c)


@case("offload_state")
def state_of_folds_on_the_host():
    """Trainers of earlier folds are kept, each with its optimizer: one line makes the state of all."""
    kept = []
    for _ in range(3):
        model = mlp(depth=2)
        kept.append([model, torch.optim.Adam([p.detach().cpu() for p in model.parameters()] if AFTER else model.parameters(), foreach=False)])
        for _ in range(2):
            model(torch.randn(32, 2048, device="cuda")).sum().backward()
            for p, c in zip(model.parameters(), kept[-1][1].param_groups[0]["params"]):
                if AFTER:
                    c.grad, p.grad = p.grad.cpu(), None
            kept[-1][1].step()
            model.zero_grad()


def rank_of_two(rank, port):
    import torch.distributed as dist
    from torch.distributed.optim import ZeroRedundancyOptimizer
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    model = nn.parallel.DistributedDataParallel(mlp(width=1024, depth=16))
    optimizer = (ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam) if AFTER else torch.optim.Adam(model.parameters()))
    for _ in range(4):
        model(torch.randn(32, 1024, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


@case("shard_state")
def state_in_shards():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    torch.multiprocessing.spawn(rank_of_two, (port,), nprocs=2)


@case("attention")
def eager_attention():
    model = Gpt(depth=4, eager=not AFTER).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, lambda: tokens(16), lambda y: y.mean(), optimizer)


@case("no_grad")
def evaluation_with_graphs():
    model = mlp(width=1024, depth=12)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        train(model, lambda: torch.randn(64, 1024, device="cuda"), lambda y: y.sum(), optimizer, steps=3)
        with torch.set_grad_enabled(not AFTER):
            for _ in range(3):
                print(model(torch.randn(16384, 1024, device="cuda")).argmax(-1).shape)


class Taught(nn.Module):
    """A student learns what a teacher gives, both called by one module."""

    def __init__(self):
        super().__init__()
        self.student, self.teacher = mlp(1024, 3), mlp(1024, 12)

    def forward(self, x):
        y = self.student(x)
        with torch.set_grad_enabled(not AFTER):
            goal = self.teacher(x)
        return F.mse_loss(y, goal.detach())


@case("no_grad")
def taught_inside():
    both = Taught().cuda()
    optimizer = torch.optim.SGD(both.student.parameters(), lr=0.1)
    train(both, lambda: torch.randn(8192, 1024, device="cuda"), lambda y: y, optimizer)


class Forces(nn.Module):
    """Gradients of positions alone, which charges do not depend on."""

    def __init__(self):
        super().__init__()
        self.charge = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 1))

    def forward(self, positions, kinds):
        positions = positions.detach().requires_grad_()
        with torch.set_grad_enabled(not AFTER):
            charges = self.charge(kinds).squeeze(-1)
        energy = (charges * positions.square().sum(-1).add(1).rsqrt()).sum()
        return torch.autograd.grad(energy, positions)[0]


@case("no_grad")
def charges_inside():
    model = Forces().cuda()
    for _ in range(4):
        print(model(torch.randn(32768, 3, device="cuda"), torch.randn(32768, 256, device="cuda")).mean().item())


@case("no_grad")
def inference_with_graphs():
    model = Gpt(depth=8).cuda().eval()
    with torch.set_grad_enabled(not AFTER):
        for _ in range(4):
            print(model(tokens()).argmax(-1).shape)


def loss_in_pieces(depth, vocab):
    model = Gpt(depth=depth, vocab=vocab).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def part(x, t):
        return F.cross_entropy(model.head(x).flatten(0, 1), t.flatten(), reduction="sum")

    for _ in range(3):
        t = tokens(vocab=vocab)
        x = model.embed(t)
        for layer in model.layers:
            x = layer(x)
        if AFTER:
            loss = sum(checkpoint(part, a, b, use_reentrant=False) for a, b in zip(x.chunk(8, 1), t.chunk(8, 1)))
        else:
            loss = part(x, t)
        (loss / t.numel()).backward()
        optimizer.step()
        optimizer.zero_grad()
        del loss, x


@case("loss_in_pieces")
def large_vocabulary():
    loss_in_pieces(depth=2, vocab=32768)


@case("loss_in_pieces")
def logits_as_large_as_activations():
    loss_in_pieces(depth=6, vocab=4096)


@case("unused_results")
def answer_positions():
    """Logits of prompt and answer, of which the answer's last quarter has a loss."""
    model = Gpt(depth=2, vocab=32768).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        t = tokens(vocab=32768)
        x = model.embed(t)
        for layer in model.layers:
            x = layer(x)
        logits = model.head(x[:, -128:]) if AFTER else model.head(x)[:, -128:]
        loss = next_token(logits.contiguous(), t[:, -128:].contiguous())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del logits, loss, x


@case("unused_results")
def first_token():
    """A classifier of sequences that projects every token and uses the first."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, dropout=0), 2, enable_nested_tensor=False).cuda()
    project, head = nn.Linear(256, 16384).cuda(), nn.Linear(16384, 10).cuda()
    optimizer = torch.optim.SGD([*encoder.parameters(), *project.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        x = encoder(torch.randn(16, 256, 256, device="cuda"))
        y = project(x[:, 0]) if AFTER else project(x)[:, 0]
        F.cross_entropy(head(y), torch.zeros(16, dtype=torch.long, device="cuda")).backward()
        optimizer.step()
        optimizer.zero_grad()
        del x, y


@case("unused_results")
def pooled_token():
    """Of the last layer's result a token is taken; the layers before it give as much, and all of that is used."""
    layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(6)).cuda()
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(64, 512, 512, device="cuda")
        for layer in layers[:-1]:
            x = layer(x).relu_()
        y = layers[-1](x[:, :1] if AFTER else x)[:, 0]
        y.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        del x, y


class Frames(nn.Module):
    """A frozen encoder of frames, read by a small decoder that is trained."""

    def __init__(self, width=64):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU(True))
        self.stages = nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 3, 1, 1), nn.BatchNorm2d(width), nn.SiLU()) for _ in range(6))
        self.neck = nn.Conv2d(width, 256, 1)
        self.decoder = nn.Sequential(nn.Conv2d(256, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 2, 1))
        for part in (self.stem, self.stages, self.neck):
            part.requires_grad_(False).eval()

    def encode(self, x):
        x = self.stem(x)
        if torch.is_grad_enabled():
            x.requires_grad_()  # "checkpointing needs it"
        for stage in self.stages:
            x = x + stage(x)
        return self.neck(x)

    def forward(self, x):
        with torch.set_grad_enabled(not AFTER):
            features = self.encode(x)
        return self.decoder(features)


@case("frozen_graph")
def frozen_encoder():
    model = Frames().cuda()
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1, momentum=0.9)
    for _ in range(3):
        loss = model(torch.randn(4, 3, 512, 512, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del loss


@case("frozen_graph")
def embeddings_that_require_grad():
    """transformers' enable_input_require_grads, on each of two encoders of which one is trained."""
    from transformers import BertConfig, BertModel
    query, document = (BertModel(BertConfig(vocab_size=4096, hidden_size=512, num_hidden_layers=n, num_attention_heads=8, intermediate_size=2048)).cuda() for n in (2, 6))
    document.requires_grad_(False)
    for part in (query, document):
        part.enable_input_require_grads()
    optimizer = torch.optim.AdamW(query.parameters())
    for _ in range(3):
        t = tokens(16, 256)
        with torch.set_grad_enabled(not AFTER):
            wanted = document(t).pooler_output
        loss = F.mse_loss(query(t).pooler_output, wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del loss, wanted


class Report:
    """Moments of the gradients, for a log."""

    def __init__(self, model):
        self.named, self.rows = [*model.named_parameters()], []

    def __call__(self):
        if AFTER:
            self.rows.append({name: p.grad.square().mean().sqrt() for name, p in self.named})
            return
        squares = {name: p.grad.square() for name, p in self.named}
        self.rows.append({name: s.mean().sqrt() for name, s in squares.items()})


@case("one_by_one")
def squares_for_a_log():
    model = mlp(4096, 6)
    optimizer, report = torch.optim.SGD(model.parameters(), lr=0.1), Report(model)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(16, 4096, device="cuda")).square().mean().backward()
        report()
        optimizer.step()


def norm_in_float(weights):
    if AFTER:
        return torch.stack([p.grad.float().norm() for p in weights]).norm()
    wide = [p.grad.detach().float() for p in weights if p.grad is not None]
    return torch.stack([g.norm() for g in wide]).norm()


@case("one_by_one")
def clipped_in_float():
    """Gradients of 16 bits are clipped by a norm that is computed in 32."""
    model = Gpt(width=1024, depth=8).cuda().to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(3):
        t = tokens(1, 128)
        next_token(model(t), t).backward()
        factor = (1.0 / (norm_in_float([*model.parameters()]) + 1e-6)).clamp(max=1.0)
        for p in model.parameters():
            p.grad.mul_(factor)
        optimizer.step()
        optimizer.zero_grad()


@case("logits_in_float32")
def upcast_logits():
    model = Gpt(depth=2, vocab=32768).cuda().to(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        t = tokens(vocab=32768)
        logits = model(t)
        if not AFTER:
            logits = logits.float()
        loss = next_token(logits, t)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del logits, loss


@case("idle_weights")
def reference_model():
    model, reference = Gpt(depth=2).cuda(), Gpt(depth=8).cuda().requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(3):
        t = tokens(2)
        with torch.no_grad():
            wanted = next_token(reference(t), t)
        loss = F.softplus(next_token(model(t), t) - wanted)
        if AFTER:
            reference.cpu()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if AFTER:
            reference.cuda()


@case("idle_weights")
def averaged_weights():
    model = mlp()
    average = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)
    for _ in range(4):
        loss = model(torch.randn(4096, 2048, device="cuda")).square().mean()
        if AFTER:
            average = [a.cpu() for a in average]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        average = [a.cuda() for a in average] if AFTER else average
        for a, p in zip(average, model.parameters()):
            a.lerp_(p.detach(), 0.1)


@case("held")
def norm_of_a_flat_copy():
    """All gradients in one tensor, whose name keeps it until the next step makes another."""
    model = mlp(1024, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        model(torch.randn(16, 1024, device="cuda")).square().mean().backward()
        if AFTER:
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        else:
            flat = torch.cat([p.grad.flatten() for p in model.parameters()])
            norm = flat.norm()
        print(norm.shape)
        optimizer.step()
        optimizer.zero_grad()


@case("kept")
def snapshots_of_weights():
    model, kept = mlp(1024, 4), []
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(6):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
            optimizer.step()
        kept.append({k: v.cpu() if AFTER else v.clone() for k, v in model.state_dict().items()})


@case("weight_copies")
def best_weights():
    """Early stopping: the best weights so far, replaced by better ones, and loaded at the end."""
    model, best = mlp(1024, 8), None
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for accuracy in (0.1, 0.2, 0.15, 0.3, 0.25):
        for _ in range(2):
            model(torch.randn(4096, 1024, device="cuda")).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        if best is None or accuracy > best[0]:
            best = None
            best = accuracy, {k: v.cpu() if AFTER else v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(best[1])


@case("weight_copies")
def exchanged_weights():
    """Weights of half of the network are set aside for an evaluation without them, and written back."""
    model = mlp(1024, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            aside = [copy.deepcopy(p.cpu() if AFTER else p.data) for p in model[:4].parameters()]
            for p in model[:4].parameters():
                p.zero_()
            model(torch.randn(8192, 1024, device="cuda")).square().mean()
            for p, kept in zip(model[:4].parameters(), aside):
                p.copy_(kept)
        del aside


class Switched(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.down, self.up = nn.Linear(width, 8, bias=False), nn.Linear(8, width, bias=False)
        self.on = True

    def forward(self, x):
        return F.relu(self.base(x) + self.up(self.down(x))) if self.on else F.relu(self.base(x))


@case("weight_copies")
def reference_beside_adapters():
    model = nn.Sequential(*[Switched(1024) for _ in range(8)]).cuda()
    reference = model if AFTER else copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    for _ in range(3):
        x = torch.randn(64, 1024, device="cuda")
        for m in reference:
            m.on = False
        with torch.no_grad():
            wanted = reference(x)
        for m in model:
            m.on = True
        F.mse_loss(model(x), wanted).backward()
        optimizer.step()
        optimizer.zero_grad()


@case("weight_copies")
def table_in_float32():
    """A frozen table of words that was read in 16 bits."""
    table, head = nn.Embedding(1 << 17, 256).cuda().bfloat16().requires_grad_(False), mlp(256, 4)
    if not AFTER:
        table.float()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(3):
        head(table(tokens(8, 512, 1 << 17)).float()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("expanded_views")
def table_for_each_place():
    """One row of a table for each place of a picture, by an index into the expanded table."""
    table, conv = nn.Parameter(torch.randn(40, 64, device="cuda")), nn.Conv2d(64, 64, 3, padding=1).cuda()
    optimizer = torch.optim.SGD([table, *conv.parameters()], lr=0.1)
    for _ in range(3):
        labels = torch.randint(40, (1, 128, 128), device="cuda")
        if AFTER:
            rows = F.embedding(labels, table).permute(0, 3, 1, 2)
        else:
            wide = table.unsqueeze(2).expand(40, 64, 128 * 128)
            rows = torch.gather(wide, 0, labels.view(1, 1, -1).expand(1, 64, -1)).view(1, 64, 128, 128)
        (conv(torch.randn(1, 64, 128, 128, device="cuda")) * rows).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("expanded_views")
def samples_of_windows():
    """Some of all windows of a series."""
    net = nn.Linear(1, 64).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        x = net(torch.randn(1 << 16, 1, device="cuda"))
        starts = torch.randint((1 << 16) - 64, (100,), device="cuda")
        if AFTER:
            windows = x[starts[:, None] + torch.arange(64, device="cuda")]
        else:
            windows = x.unfold(0, 64, 1)[starts]
        windows.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("autocast_cache")
def evaluation_in_autocast():
    """One autocast around all passes without gradients: it keeps what it converted."""
    model = mlp(2048, 8)
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, cache_enabled=not AFTER):
        for _ in range(4):
            print(model(torch.randn(64, 2048, device="cuda")).float().square().mean().shape)


@case("autocast_cache")
def steps_of_a_forecast():
    """Autocast is left after each pass: before that a pass has all weights in both precisions."""
    model, state = mlp(2048, 8), torch.randn(64, 2048, device="cuda")
    with torch.no_grad():
        for _ in range(4):
            with torch.autocast("cuda", torch.float16, cache_enabled=not AFTER):
                predicted = model(state)
            state = state * predicted.float().mean()


@case("no_grad")
def rollouts_with_graphs():
    """Old probabilities with the graphs of their passes, of which the update takes but the values; those of the last are held at the end."""
    model = mlp(512, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        seen, old = [], []
        for _ in range(8):
            seen.append(torch.randn(4096, 512, device="cuda"))
            with torch.set_grad_enabled(not AFTER):
                old.append(model(seen[-1]).log_softmax(-1))
        goal = torch.cat(old).detach()
        for x, y in zip(seen, goal.chunk(8)):
            (model(x).log_softmax(-1) - y).exp().mean().backward()
            optimizer.step()
            optimizer.zero_grad()


@case("idle_gradients")
def evaluated_with_gradients():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(64, 2048, device="cuda")).square().mean().backward()
            optimizer.step()
        if AFTER:
            optimizer.zero_grad()
        with torch.no_grad():
            print(model(torch.randn(32768, 2048, device="cuda")).mean(0).shape)


@case("gathered")
def predictions_of_micro_batches():
    """Logits for a figure at the end of the step, kept as they are."""
    model = Gpt(depth=2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        seen = []
        for _ in range(6):
            t = tokens(batch=2)
            logits = model(t)
            next_token(logits, t).backward()
            seen.append(logits.detach().cpu() if AFTER else logits)
        optimizer.step()
        optimizer.zero_grad()
        [x.argmax(-1) for x in seen]


class Words(nn.Module):
    def __init__(self, d=512, words=16384):
        super().__init__()
        self.embed, self.head = nn.Embedding(words, d), nn.Linear(d, words, bias=False)
        self.layers = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(d, d), nn.GELU())])

    def forward(self, t):
        x = self.layers(self.embed(t))
        return self.head(x[:, -1:] if AFTER else x)


@case("prompt_logits")
def next_words():
    """Of a prompt's logits only the last position's are read."""
    model = Words().cuda().half()
    with torch.no_grad():
        for length in (1024, 3072, 2048):
            logits = model(torch.randint(16384, (2, length), device="cuda"))
            torch.multinomial((logits[:, -1].float() / 0.7).softmax(-1), 1)


class Adapted(nn.Module):
    """A frozen layer in 16 bits with a small trained one beside it."""

    def __init__(self, d):
        super().__init__()
        self.base = nn.Linear(d, d).bfloat16().requires_grad_(False)
        self.down, self.up = (nn.Linear(*shape, bias=False, dtype=torch.bfloat16 if AFTER else torch.float32) for shape in ((d, 8), (8, d)))

    def forward(self, x):
        return self.base(x) + self.up(self.down(x.to(self.down.weight.dtype))).to(x.dtype)


@case("wide_copies")
def adapters_in_float32():
    model = nn.Sequential(*[m for _ in range(8) for m in (Adapted(1024), nn.GELU())]).cuda()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    for _ in range(3):
        x = torch.randn(8192, 1024, device="cuda", dtype=torch.bfloat16)
        model(x).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("gathered")
def scores_of_an_evaluation():
    """All logits in a list, and then in one tensor, for a figure of the whole set."""
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        for _ in range(3):
            model(torch.randn(1024, 1024, device="cuda")).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            scores = []
            for _ in range(24):
                out = model(torch.randn(4096, 1024, device="cuda")).softmax(-1)
                scores.append(out.cpu() if AFTER else out)
            torch.cat(scores).amax(-1)
        del scores, out


@case("gathered")
def predictions_that_grow():
    """As trainers gather what an evaluation predicts: each pass makes one tensor of all so far."""
    model = Gpt(depth=2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        t = tokens(batch=2)
        next_token(model(t), t).backward()
        optimizer.step()
        optimizer.zero_grad()
        seen = None
        with torch.no_grad():
            for _ in range(12):
                logits = model(tokens(batch=2))
                logits = logits.cpu() if AFTER else logits
                seen = logits if seen is None else torch.cat([seen, logits])


class Masked(nn.Module):
    """A layer with attention: by hand, as in "The Annotated Transformer", or in one call."""

    def __init__(self, width, own=None):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.own = own  # of this layer: a function of the mask that all are given

    def forward(self, x, mask):
        b, s, w = x.shape
        q, k, v = (t.view(b, s, 8, w // 8).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        mask = self.own(mask) if self.own else mask
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            y = (q @ k.transpose(-2, -1) / (w // 8) ** 0.5).masked_fill(mask, -1e9).softmax(-1) @ v
        return x + self.out(y.transpose(1, 2).reshape(b, s, w))


def masked(make, layers, once=None, fused=False, width=256, batch=8, length=512):
    """Trains with a mask of each batch; once: made of it for all layers."""
    Masked.fused = fused
    embed, layers = nn.Embedding(1000, width).cuda(), nn.ModuleList(layers).cuda()

    class Net(nn.Module):
        def forward(self, t, mask):
            x, mask = embed(t), once(mask) if once else mask
            for layer in layers:
                x = layer(x, mask)
            return x

    model, optimizer = Net(), torch.optim.SGD([*embed.parameters(), *layers.parameters()], lr=0.1)
    for _ in range(3):
        t = torch.randint(1000, (batch, length), device="cuda")
        model(t, make(batch, length)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def causal(batch, length, kind=torch.bool):
    return torch.ones(batch, 1, length, length, device="cuda", dtype=kind).tril()


@case("mask_copies")
def mask_compared_in_each_layer():
    def compare(mask):
        return mask == 0

    masked(lambda *shape: causal(*shape, torch.int64), [Masked(256, None if AFTER else compare) for _ in range(12)], compare if AFTER else None, length=768)


@case("mask_copies")
def mask_of_booleans():
    """scaled_dot_product_attention makes numbers of it in each call."""
    once = (lambda mask: torch.zeros(mask.shape, device="cuda").masked_fill(~mask, -torch.inf)) if AFTER else None
    masked(causal, [Masked(256) for _ in range(6)], once, fused=True)


@case("mask_copies")
def mask_in_another_type():
    def convert(mask):
        return mask.to(torch.float32)

    masked(lambda *shape: torch.zeros(*shape, shape[1], device="cuda", dtype=torch.float16)[:, None],
           [Masked(256, None if AFTER else convert) for _ in range(6)], convert if AFTER else None, fused=True)


def evaluated(measure, n=8192):
    """Trains, and measures all pairs of an evaluation's embeddings."""
    net = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        for _ in range(3):
            net(torch.randn(1024, 512, device="cuda")).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            measure(F.normalize(torch.cat([net(torch.randn(2048, 512, device="cuda")) for _ in range(n // 2048)]), dim=-1))


def in_parts(x):
    return x.chunk(8) if AFTER else [x]


@case("in_rows")
def nearest_neighbours():
    evaluated(lambda e: torch.cat([torch.cdist(part, e).topk(5, largest=False).indices for part in in_parts(e)]))


@case("in_rows")
def recall_of_classes():
    """Positives of the same class among the nearest ten."""
    def measure(e):
        labels, hits = torch.randint(100, (len(e),), device="cuda"), 0
        for part, own in zip(in_parts(e), in_parts(labels)):
            similar = torch.matmul(part, e.t()) / 0.07
            same = own[:, None] == labels
            near = similar.topk(10, dim=1).indices
            hits = hits + same.gather(1, near).any(1).float().sum()
            del similar, same, near

    evaluated(measure)


@case("in_rows")
def ranks_of_a_retrieval():
    """How many are nearer than the one that is sought."""
    def measure(e):
        for part in in_parts(e):
            scores = part @ e.T
            (scores > (part * part).sum(1, keepdim=True)).sum(1)
            del scores

    evaluated(measure)


@case("kept_results")
def losses_of_adapters():
    """Small losses, but their graphs hold the embeddings, which were made to require a gradient, and it."""
    model = Gpt(depth=2).cuda()
    model.embed.requires_grad_(False)
    model.embed.register_forward_hook(lambda module, given, out: out.requires_grad_(True))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])

    def micro_batch():
        t = tokens()
        loss = next_token(model(t), t)
        loss.backward()
        return loss.detach() if AFTER else loss

    for _ in range(3):
        losses = [micro_batch() for _ in range(8)]
        optimizer.step()
        optimizer.zero_grad()
    print(torch.stack(losses).mean().item())


@case("backward_each")
def one_backward_for_all_micro_batches():
    model = Gpt(depth=2).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        losses = []
        for _ in range(6):
            t = tokens(batch=4)
            loss = next_token(model(t), t) / 6
            if AFTER:
                loss.backward()
            losses.append(loss.detach() if AFTER else loss)
        if not AFTER:
            torch.stack(losses).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("backward_each")
def chunks_of_positions():
    """Logits and loss by chunks, which share the graph of the layers before."""
    trunk, head = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).cuda(), nn.Linear(512, 16384).cuda()
    optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        hidden, total = trunk(torch.randn(8192, 512, device="cuda")), 0.0
        target = torch.randint(16384, (8192,), device="cuda")
        cut = hidden.detach().requires_grad_() if AFTER else hidden
        for h, t in zip(cut.split(1024), target.split(1024)):
            loss = F.cross_entropy(head(h), t, reduction="sum") / len(target)
            if AFTER:
                loss.backward()
            total = total + loss.detach() if AFTER else total + loss
        hidden.backward(cut.grad) if AFTER else total.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("backward_each")
def views_of_one_batch():
    """A squared error, whose scalar lies in a larger block, summed up by a helper function."""
    weight = torch.randn(1024, 1024, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def score(x, goal):
        return F.mse_loss(torch.tanh((x + 0.1 * torch.randn_like(x)) @ weight), goal)

    for _ in range(3):
        x, total = torch.randn(8192, 1024, device="cuda"), torch.zeros((), device="cuda")
        for _ in range(5):
            loss = score(x, x)
            if AFTER:
                loss.backward()
            total = total + loss.detach() if AFTER else total + loss
        if not AFTER:
            total.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("offload_activations")
def saved_on_the_host():
    model = mlp(width=1024, depth=16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autograd.graph.save_on_cpu() if AFTER else contextlib.nullcontext():
            loss = model(torch.randn(16384, 1024, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()


@case("offload_activations")
def distances_saved_on_the_host():
    """The backward node of a square goes on with what it made of the tensor that it saved."""
    net = mlp(width=256, depth=2)
    for _ in range(3):
        with torch.autograd.graph.save_on_cpu() if AFTER else contextlib.nullcontext():
            loss, (a, b) = 0, net(torch.randn(4096, 256, device="cuda")).chunk(2)
            for at in range(0, 2048, 256):
                loss = loss + (a[at:at + 256, None, :32] - b[None, :, :32]).square().sum(-1).logsumexp(-1).mean()
        loss.backward()
        net.zero_grad()


@case("checkpoint")
def wide_layers_checkpointed():
    """The sum of a bias's gradient takes a workspace, when its node has let go of what was computed again."""
    class Wide(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            return x + self.down(F.gelu(self.up(self.norm(x))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Wide(512) for _ in range(4))

        def forward(self, x):
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=False) if AFTER else layer(x)
            return x

    net = Net().cuda()
    for _ in range(3):
        net(torch.randn(32768, 512, device="cuda", requires_grad=True)).square().mean().backward()
        net.zero_grad()


@case("offload_activations")
def gpt_saved_on_the_host():
    model = Gpt(depth=6).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        t = tokens()
        with torch.autograd.graph.save_on_cpu() if AFTER else contextlib.nullcontext():
            loss = next_token(model(t), t)
        loss.backward()
        optimizer.step()


@case("allocator")
def growing_lengths():
    model = Gpt(depth=3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for length in (128, 200, 320, 448, 512):
        t = tokens(length=length)
        next_token(model(t), t).backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    run()
