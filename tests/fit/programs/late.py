# SPDX-License-Identifier: Apache-2.0
"""Programs that need most when they have run for a while."""
import copy
import os
import tempfile

from parts import F, GPU, Language, Vision, labels, learn, main, mlp, nn, pictures, program, text, torch


@program()
def longest_batch():
    """Padded batches; the longest texts come in step 33."""
    model = Language().to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    lengths = [128, 160, 96, 192, 144] * 10
    lengths[33] = 1024
    for length in lengths:
        learn(optimizer, model.loss(text(8, length)))


@program()
def second_model():
    """An autoencoder whose discriminator joins after step 20, with an optimizer of its own."""
    coder, discriminator = Vision(32, 3 * 64 * 64).to(GPU), None
    optimizer = torch.optim.Adam(coder.parameters(), lr=4e-4)
    for step in range(50):
        x = pictures(128)
        made = coder(x).view_as(x)
        loss = F.l1_loss(made, x)
        if step >= 20:
            if discriminator is None:
                discriminator = Vision(128, 1).to(GPU)
                opposed = torch.optim.Adam(discriminator.parameters(), lr=4e-4)
            loss = loss - 0.1 * discriminator(made).mean()
        learn(optimizer, loss)
        if discriminator is not None:
            learn(opposed, F.relu(1 - discriminator(x)).mean() + F.relu(1 + discriminator(made.detach())).mean())


@program()
def unfreezing():
    """Epoch 0 trains the head; from epoch 1 on all is trained."""
    backbone, head = mlp(4096, 8, 4096).to(GPU).requires_grad_(False), nn.Linear(4096, 1000).to(GPU)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3)
    for epoch in range(3):
        if epoch == 1:
            backbone.requires_grad_(True)
            optimizer.add_param_group(dict(params=list(backbone.parameters()), lr=1e-4))
        for _ in range(20):
            learn(optimizer, F.cross_entropy(head(backbone(torch.randn(4096, 4096, device=GPU))), labels(4096)))


@program()
def last_evaluation():
    """An evaluation at the end, which gathers all logits."""
    model = Language(32000).to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(30):
        learn(optimizer, model.loss(text(4, 256, 32000)))
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(text(8, 256, 32000)) for _ in range(8)])
    print("perplexity", float(logits.float().logsumexp(-1).mean()))


class Trainer:
    """In the style of Hugging Face's: train() calls evaluate() after each epoch."""

    def __init__(self, model, batch, eval_batch):
        self.model, self.batch, self.eval_batch = model, batch, eval_batch
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: min(1, step / 10))

    def train(self, epochs, steps):
        for epoch in range(epochs):
            self.model.train()
            for _ in range(steps):
                loss = self.model.loss(self.batch())
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.schedule.step()
                self.optimizer.zero_grad()
            print(f"epoch {epoch}: {self.evaluate()}", flush=True)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        return sum(float(self.model.loss(self.eval_batch())) for _ in range(3))


@program()
def evaluation_of_epochs():
    """An evaluation after each epoch of 20 steps, with a batch eight times as large."""
    Trainer(Language().to(GPU), lambda: text(4, 256), lambda: text(48, 512)).train(3, 20)


@program()
def best_checkpoint():
    """The best checkpoint is loaded at the end, onto the device."""
    model = mlp(2048, 10).to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "best.pt")
        for step in range(25):
            learn(optimizer, F.cross_entropy(model(torch.randn(256, 2048, device=GPU)), labels(256)))
            if step == 5:
                torch.save(dict(model=model.state_dict(), optimizer=optimizer.state_dict()), path)
        best = torch.load(path, map_location="cuda")
        model.load_state_dict(best["model"])
        optimizer.load_state_dict(best["optimizer"])
    learn(optimizer, F.cross_entropy(model(torch.randn(256, 2048, device=GPU)), labels(256)))


@program()
def late_average():
    """An average of the weights from step 25 on, and samples from it every tenth step."""
    model = mlp(8192, 4, 8192).to(GPU)
    optimizer, average = torch.optim.SGD(model.parameters(), lr=0.01), None
    for step in range(50):
        learn(optimizer, F.mse_loss(model(torch.randn(512, 8192, device=GPU)), torch.randn(512, 8192, device=GPU)))
        if step == 25:
            average = copy.deepcopy(model)
        if average is not None:
            with torch.no_grad():
                for slow, fast in zip(average.parameters(), model.parameters()):
                    slow.lerp_(fast, 0.01)
                if step % 10 == 0:
                    average(torch.randn(8192, 8192, device=GPU))


@program()
def many_passes():
    """Gradients of 32 batches are added up before the optimizer's first step."""
    model = mlp(8192, 6).to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for batch in range(128):
        (F.cross_entropy(model(torch.randn(64, 8192, device=GPU)), labels(64)) / 32).backward()
        if batch % 32 == 31:
            optimizer.step()
            optimizer.zero_grad()


@program()
def two_phases():
    """A network for an equation: Adam first, then L-BFGS with its history, on more points."""
    model = mlp(2048, 5, 1, 2).to(GPU)

    def residual(points):
        u = model(points)
        du = torch.autograd.grad(u.sum(), points, create_graph=True)[0]
        return (du.square().sum(-1) - 1).square().mean() + u.square().mean()

    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(40):
        learn(optimizer, residual(torch.rand(4096, 2, device=GPU, requires_grad=True)))
    optimizer, points = torch.optim.LBFGS(model.parameters(), max_iter=20), torch.rand(16384, 2, device=GPU, requires_grad=True)

    def closure():
        optimizer.zero_grad()
        loss = residual(points)
        loss.backward()
        return loss
    for _ in range(3):
        optimizer.step(closure)


@program()
def wider_trials():
    """A search over widths in one process, the widest last."""
    for width in (1024, 1536, 2048, 4096):
        model = mlp(width).to(GPU)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for _ in range(20):
            learn(optimizer, F.cross_entropy(model(torch.randn(4096, width, device=GPU)), labels(4096)))
        del model, optimizer


@program()
def larger_pictures():
    """Training at 96 pixels, with a short pass at 224 behind it."""
    model = Vision().to(GPU)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    for size, steps in ((96, 30), (224, 5)):
        for _ in range(steps):
            with torch.autocast("cuda", torch.float16):
                loss = F.cross_entropy(model(pictures(64, size)), labels(64, 100))
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()


@program()
def rate_finder():
    """A search for the learning rate on a copy of the model, then the training of all layers."""
    model = Language().to(GPU)
    trial = copy.deepcopy(model)
    optimizer = torch.optim.SGD(trial.parameters(), lr=1e-7)
    for _ in range(25):
        learn(optimizer, trial.loss(text(4, 128)))
        optimizer.param_groups[0]["lr"] *= 1.5
    del trial, optimizer
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(25):
        learn(optimizer, model.loss(text(16, 384)))


if __name__ == "__main__":
    main()
