# SPDX-License-Identifier: Apache-2.0
"""Memory that is never given back, and saws that look like it."""
import copy
import gc

from parts import F, GPU, Language, Sample, Vision, labels, learn, main, mlp, nn, pictures, program, text, torch


@program(leaks=True)
def kept_outputs():
    """The logits of every batch are kept for an accuracy at the end."""
    model = mlp().to(GPU)
    optimizer, outputs = torch.optim.AdamW(model.parameters(), lr=1e-3), []
    for step in range(60):
        logits = model(torch.randn(4096, 2048, device=GPU))
        learn(optimizer, F.cross_entropy(logits, labels(4096)))
        outputs.append(logits.detach())
        print(f"step {step}", flush=True)


@program(leaks=True)
def hard_examples():
    """After a warm-up of 20 steps the hardest examples of each batch go into a bank that nobody empties."""
    model = Vision().to(GPU)
    optimizer, bank = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), []
    for step in range(60):
        x = pictures(64, 128)
        losses = F.cross_entropy(model(x), labels(64, 100), reduction="none")
        learn(optimizer, losses.mean())
        if step >= 20:
            bank.append(model.features[:8](x[losses.argsort(descending=True)[:48]]).detach())


@program(leaks=True)
def figures_for_the_log():
    """Every tenth step the activations are kept for a histogram that is drawn at the end."""
    model = mlp().to(GPU)
    optimizer, seen = torch.optim.Adam(model.parameters()), {}
    for step in range(80):
        x = torch.randn(4096, 2048, device=GPU)
        if step % 10 == 9:
            for name, layer in model.named_children():
                x = layer(x)
                seen[step, name] = x.detach()
            out = x
        else:
            out = model(x)
        learn(optimizer, out.square().mean())


def trains_with_rare_collection(keep):
    gc.disable()  # as large trainings do, so that all ranks collect at the same step
    model = Vision().to(GPU)
    optimizer, kept = torch.optim.AdamW(model.parameters(), lr=1e-3), []
    for step in range(76):
        sample = Sample(pictures(128, 192))
        loss = F.cross_entropy(model(sample.x), labels(128, 100))
        learn(optimizer, loss)
        if keep:
            kept.append(sample.x)
        if step % 15 == 14:
            gc.collect()


@program()
def collector_saw():
    """Batches in reference cycles, which the garbage collector frees every 15 steps."""
    trains_with_rare_collection(False)


@program(leaks=True)
def collector_saw_and_leak():
    """The same, and some of them are kept."""
    trains_with_rare_collection(True)


@program(leaks=True)
def state_not_detached():
    """Truncated backpropagation through time without the detach."""
    rnn, head = nn.LSTMCell(512, 1024).to(GPU), nn.Linear(1024, 512).to(GPU)
    optimizer = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.01)
    state, total = None, 0
    for step in range(50):
        losses = []
        for x in torch.randn(8, 1024, 512, device=GPU):
            state = rnn(x, state)
            losses.append(head(state[0]).square().mean())
        optimizer.zero_grad()
        torch.stack(losses).sum().backward(retain_graph=True)
        for p in rnn.parameters():
            p.data.add_(p.grad, alpha=-0.01)


@program(leaks=True)
def snapshots_of_epochs():
    """The weights after each epoch are kept on the device, to choose the best of them."""
    model = mlp(4096, 4).to(GPU)
    optimizer, best = torch.optim.AdamW(model.parameters(), lr=1e-3), []
    for epoch in range(10):
        for _ in range(6):
            learn(optimizer, F.cross_entropy(model(torch.randn(512, 4096, device=GPU)), labels(512)))
        best.append((0.0, copy.deepcopy(model.state_dict())))
        print(f"epoch {epoch} done", flush=True)


@program(leaks=True)
def conversations():
    """Generation that keeps the keys and values of every conversation."""
    projection, out = nn.Linear(1024, 3072, device=GPU), nn.Linear(1024, 1024, device=GPU)
    caches = {}
    with torch.inference_mode():
        for user in range(120):
            x = torch.randn(16, 512, 1024, device=GPU)
            for layer in range(4):
                q, k, v = (t.unflatten(-1, (16, 64)).transpose(1, 2) for t in projection(x).chunk(3, -1))
                caches[user, layer] = k.contiguous(), v.contiguous()
                x = out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


@program(leaks=True)
def total_of_losses():
    """A long training with `total += loss` over the outputs of an auxiliary head: half a MiB a step."""
    model, auxiliary = mlp(1024, 3).to(GPU), nn.Linear(1000, 128, device=GPU)
    optimizer, total = torch.optim.SGD([*model.parameters(), *auxiliary.parameters()], lr=0.1), 0
    for step in range(12000):
        logits = model(torch.randn(128, 1024, device=GPU))
        total = total + auxiliary(logits.detach()).sin().mean()
        learn(optimizer, logits.square().mean())


@program(leaks=True)
def rolling_teacher():
    """Text; each step's hidden states stay in a list that a plot would use."""
    model, hidden = Language().to(GPU), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.layers[-1].register_forward_hook(lambda _, __, out: hidden.append(out.detach()))
    for _ in range(50):
        with torch.autocast("cuda", torch.bfloat16):
            loss = model.loss(text(16, 512))
        learn(optimizer, loss)


if __name__ == "__main__":
    main()
