# SPDX-License-Identifier: Apache-2.0
"""loops.py NAME: small trainings whose steps are told apart less easily than by a loop of forward, backward and optimizer."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

PROGRAMS = {}
D = 512


def case(what):
    def note(function):
        PROGRAMS[function.__name__] = function
        return function
    return note


class Layer(nn.Module):
    def __init__(self, d=D):
        super().__init__()
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


def net(layers=4, d=D):
    return nn.Sequential(*(Layer(d) for _ in range(layers))).cuda()


def rows(n=4096, d=D):
    return torch.randn(n, d, device="cuda")


def adam(*models):
    return torch.optim.AdamW([p for m in models for p in m.parameters() if p.requires_grad])


@case("a loss outside of every module, with large results")
def contrast_in_the_loop():
    model = net()
    optimizer = adam(model)
    for _ in range(5):
        a, b = F.normalize(model(rows())), F.normalize(model(rows()))
        scores = a @ b.T / 0.07
        target = torch.arange(len(a), device="cuda")
        loss = F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@case("many calls of a model, then one backward pass")
def rollout_of_calls():
    model, state_net = net(2), net(1)
    optimizer = adam(model, state_net)
    for _ in range(3):
        state, loss = rows(1024), 0
        for _ in range(16):
            state = state_net(model(state))
            loss = loss + state.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("gradients of micro-batches add up; their results are kept until the update")
def micro_batches():
    model = net()
    optimizer = adam(model)
    for _ in range(3):
        outputs = []
        for _ in range(8):
            out = model(rows(1024))
            out.square().mean().backward()
            outputs.append(out.detach())
        torch.cat(outputs).std()
        optimizer.step()
        optimizer.zero_grad()


@case("two networks in turn, each with an optimizer")
def two_players():
    makes, judges = net(3), net(3)
    first, second = adam(makes), adam(judges)
    for _ in range(4):
        fake = makes(rows())
        second.zero_grad()
        (judges(fake.detach()).mean() - judges(rows()).mean()).backward()
        second.step()
        first.zero_grad()
        (-judges(fake).mean()).backward()
        first.step()


@case("a rollout without gradients before each update by minibatches")
def policy_updates():
    policy, value = net(3), net(2)
    optimizer = adam(policy, value)
    for _ in range(3):
        with torch.no_grad():
            seen = [rows(1024) for _ in range(6)]
            acted = [(policy(x), value(x)) for x in seen]
        for _ in range(2):
            for x, (old, gain) in zip(seen, acted):
                ratio = (policy(x) - old).exp()
                loss = -(ratio * gain).mean() + (value(x) - gain).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


@case("an evaluation in each epoch; its results are gathered on the device")
def gathered_evaluation():
    model = net()
    optimizer = adam(model)
    for _ in range(3):
        for _ in range(3):
            model(rows()).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            scores = torch.cat([model(rows()) for _ in range(8)])
        scores.std()
        del scores
        model.train()


@case("an evaluation without no_grad")
def evaluation_with_graphs():
    model = net()
    optimizer = adam(model)
    for _ in range(3):
        for _ in range(2):
            model(rows()).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        losses = [model(rows()).square().mean() for _ in range(6)]
        sum(losses).item()
        del losses


@case("the graph of the loss is used twice")
def two_passes_over_one_graph():
    model = net()
    optimizer = adam(model)
    for _ in range(3):
        x = rows(2048).requires_grad_()
        out = model(x)
        grad, = torch.autograd.grad(out.square().mean(), x, create_graph=True)
        (out.mean() + grad.square().sum()).backward()
        optimizer.step()
        optimizer.zero_grad()


@case("steps by hand, without an optimizer")
def by_hand():
    model = net()
    for _ in range(5):
        loss = model(rows()).square().mean()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad = None


@case("steps by hand, gradients set to zero in place")
def by_hand_in_place():
    model = net()
    for _ in range(5):
        loss = model(rows()).square().mean()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad.zero_()


@case("features of the last steps, no more than four of them")
def bounded_memory():
    model = net()
    optimizer, queue = adam(model), []
    for _ in range(12):
        features = model(rows())
        loss = sum(((features - old) ** 2).mean() for old in queue) + features.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        queue = [*queue[-3:], features.detach()]


@case("losses with their graphs in a list, for good")
def kept_losses():
    model = net(2)
    optimizer, losses = adam(model), []
    for _ in range(12):
        loss = model(rows(2048)).square().mean()
        loss.backward(retain_graph=True)
        losses.append(loss)
        optimizer.step()
        optimizer.zero_grad()


@case("a request that is refused and caught, and a smaller batch")
def smaller_after_refusal():
    model = net()
    optimizer = adam(model)
    for n in (4096, 4_000_000, 2048, 2048):
        try:
            model(rows(n)).square().mean().backward()
            optimizer.step()
        except torch.cuda.OutOfMemoryError:
            pass
        optimizer.zero_grad()


@case("a teacher under no_grad, whose result the loss takes")
def teacher():
    model, old = net(), net()
    optimizer = adam(model)
    for _ in range(4):
        x = rows()
        with torch.no_grad():
            wanted = old(x)
        F.mse_loss(model(x), wanted).backward()
        optimizer.step()
        optimizer.zero_grad()


@case("a large result is computed, reduced and saved for backward")
def pairs_of_rows():
    model = net(2)
    optimizer = adam(model)
    for _ in range(4):
        h = model(rows(6144))
        distances = torch.cdist(h, h)
        (distances.square().mean() - distances.mean()).backward()
        optimizer.step()
        optimizer.zero_grad()


@case("a loss in parts, each of a share of the rows, and one backward pass for their sum")
def loss_in_parts():
    model, head = net(2), nn.Linear(D, 8192).cuda()
    optimizer = adam(model, head)
    for _ in range(3):
        h, target = model(rows()), torch.randint(8192, (4096,), device="cuda")
        total = 0
        for part, wanted in zip(h.split(512), target.split(512)):
            total = total + F.cross_entropy(head(part), wanted, reduction="sum") / len(h)
        total.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("results of micro-batches are kept to the end of the step with their graphs, whose leaves are results")
def kept_outputs():
    model = net(2)
    optimizer = adam(model)
    for _ in range(3):
        kept = []
        for _ in range(6):
            x = (rows() * 0.5).requires_grad_()
            out = model(x)
            out.square().mean().backward()
            kept.append(out)
        optimizer.step()
        optimizer.zero_grad()


@case("generation: keys and values grow, nothing is trained")
def generate():
    model = net(6)
    with torch.no_grad():
        for _ in range(2):
            keys = [rows(256) for _ in range(6)]
            x = rows(256)
            for _ in range(24):
                x = model(x)
                keys = [torch.cat([k, x]) for k in keys]


@case("a pass for each word and one backward pass through them all, some texts are longer; the peak is in the update")
def words_one_by_one():
    reader, cell = net(2), net(2)
    optimizer = adam(reader, cell)
    for words in (12, 20, 12, 16):
        state, loss = reader(rows(96)), 0
        for _ in range(words):
            state = cell(torch.tanh(state))
            loss = loss + F.log_softmax(state, 1)[:, 0].mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("answers are drawn without gradients before each update, and taken apart in it")
def answers_before_the_update():
    model, frozen = net(), net()
    optimizer = adam(model)
    for _ in range(3):
        with torch.no_grad():
            answers = [frozen(rows(1024)) for _ in range(8)]
        for answer in answers[::2]:
            F.mse_loss(model(answer), answer).backward()
        optimizer.step()
        optimizer.zero_grad()


@case("a backward pass for each of three losses over one graph, gradients cleared before each")
def gradients_of_each_loss():
    trunk, heads = net(), [net(1) for _ in range(3)]
    optimizer = adam(trunk, *heads)
    for _ in range(3):
        out, flat = trunk(rows()), []
        losses = [head(out).square().mean() for head in heads]
        for loss in losses:
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            flat.append(torch.cat([p.grad.flatten() for p in trunk.parameters()]))
        merged = torch.stack(flat).mean(0)
        for p, part in zip(trunk.parameters(), merged.split([p.numel() for p in trunk.parameters()])):
            p.grad = part.view_as(p)
        del merged, part, flat
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    torch.manual_seed(0)
    PROGRAMS[sys.argv[1]]()
