# SPDX-License-Identifier: Apache-2.0
"""Memory that rises for a while, and then does not."""
import collections

from parts import F, GPU, Language, Vision, labels, learn, main, mlp, nn, pictures, program, text, torch


@program(grows=True)
def replay_buffer():
    """Q-learning from a buffer on the device, which is full after 40 steps."""
    network, target = mlp(1024, 3, 18).to(GPU), mlp(1024, 3, 18).to(GPU)
    optimizer, buffer = torch.optim.Adam(network.parameters()), collections.deque(maxlen=40)
    for step in range(120):
        buffer.append((torch.randn(8192, 1024, device=GPU), torch.randn(8192, device=GPU)))
        states, rewards = buffer[step % len(buffer)]
        with torch.no_grad():
            wanted = rewards + 0.99 * target(states).max(1).values
        learn(optimizer, F.smooth_l1_loss(network(states).max(1).values, wanted))
        if step % 20 == 0:
            target.load_state_dict(network.state_dict())


@program(grows=True)
def teacher_logits():
    """Distillation; the teacher's logits are cached in the first epoch of 30 batches."""
    teacher, student = mlp(4096, 4, 8192, 2048).to(GPU).eval(), mlp(1024, 3, 8192, 2048).to(GPU)
    optimizer, cache = torch.optim.AdamW(student.parameters(), lr=1e-3), {}
    for epoch in range(3):
        for batch in range(30):
            x = torch.randn(2048, 2048, device=GPU)
            if batch not in cache:
                with torch.no_grad():
                    cache[batch] = teacher(x)
            learn(optimizer, F.kl_div(student(x).log_softmax(-1), cache[batch].softmax(-1), reduction="batchmean"))


@program(grows=True)
def length_curriculum():
    """Sequences grow from 64 to 512 tokens in the first 28 steps."""
    model = Language().to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(60):
        learn(optimizer, model.loss(text(8, min(64 + 16 * step, 512))))


@program(grows=True)
def task_heads():
    """Twelve tasks in turn: gradients and state of a head come with its first batch."""
    trunk = mlp(2048, 3, 2048).to(GPU)
    heads = nn.ModuleList(nn.Sequential(nn.Linear(2048, 4096), nn.GELU(), nn.Linear(4096, 4096)) for _ in range(12)).to(GPU)
    optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()])
    for step in range(60):
        optimizer.zero_grad(set_to_none=False)
        F.mse_loss(heads[step % 12](trunk(torch.randn(256, 2048, device=GPU))), torch.randn(256, 4096, device=GPU)).backward()
        optimizer.step()


@program(grows=True)
def batch_rampup():
    """The batch grows by 64 every second step, to 1024."""
    model = Vision(32).to(GPU)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for step in range(60):
        batch = min(64 + 64 * (step // 2), 1024)
        learn(optimizer, F.cross_entropy(model(pictures(batch, 48)), labels(batch, 100)))


class Classifier:
    """In the style of Lightning: outputs are gathered in hooks and given back at the end of an epoch."""

    def __init__(self):
        self.model, self.outputs = mlp(2048, 4).to(GPU), []
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def training_step(self, x, y):
        logits = self.model(x)
        self.outputs.append(logits.detach().float())
        return F.cross_entropy(logits, y)

    def on_epoch_end(self):
        accuracy = torch.stack([o.argmax(-1).float().mean() for o in self.outputs]).mean()
        self.outputs.clear()
        return accuracy

    def fit(self, epochs, batches):
        for _ in range(epochs):
            for _ in range(batches):
                learn(self.optimizer, self.training_step(torch.randn(8192, 2048, device=GPU), labels(8192)))
            self.on_epoch_end()


@program(grows=True)
def outputs_of_an_epoch():
    """The outputs of an epoch of 25 batches are kept until its end, four times."""
    Classifier().fit(4, 25)


@program(grows=True)
def feature_queue():
    """Contrastive learning with a queue of keys, full after 32 steps."""
    encoder, momentum = mlp(2048, 4, 1024).to(GPU), mlp(2048, 4, 1024).to(GPU)
    optimizer, queue = torch.optim.SGD(encoder.parameters(), lr=0.03), torch.empty(0, 1024, device=GPU)
    for step in range(80):
        x = torch.randn(4096, 2048, device=GPU)
        with torch.no_grad():
            for slow, fast in zip(momentum.parameters(), encoder.parameters()):
                slow.lerp_(fast, 0.001)
            keys = F.normalize(momentum(x), dim=-1)
        q = F.normalize(encoder(x), dim=-1)
        logits = q[:256] @ torch.cat([keys, queue]).T / 0.07
        learn(optimizer, F.cross_entropy(logits, torch.arange(256, device=GPU)))
        queue = torch.cat([queue, keys])[-32 * 4096:]


@program()
def long_training():
    """Nothing grows: 10,000 steps of a small network, and an evaluation every 50."""
    model = mlp(1024, 4).to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(10000):
        learn(optimizer, F.cross_entropy(model(torch.randn(16384, 1024, device=GPU)), labels(16384)))
        if step % 50 == 49:
            with torch.no_grad():
                model(torch.randn(32768, 1024, device=GPU))


if __name__ == "__main__":
    main()
