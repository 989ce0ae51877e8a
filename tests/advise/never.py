# SPDX-License-Identifier: Apache-2.0
"""Programs in which a kind of finding would be wrong: what it would have changed is needed there, or is done already."""
import collections
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
import torch.nn.functional as F
from torch import nn

from more import bert, gpt2, llama, sentences, trainer, words
from pairs import case, of_ranks, run


@case("unused_results")
def halves_that_are_both_used():
    """A gated unit: one product, of which each half has its use."""
    model = nn.ModuleList(nn.ModuleList([nn.Linear(512, 8192), nn.Linear(4096, 512)]) for _ in range(4)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(2048, 512, device="cuda")
        for up, down in model:
            y = up(x)
            x = x + down(F.silu(y[:, :4096]) * y[:, 4096:])
        x.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("unused_results")
def shifted_logits():
    """All positions but the last have a loss."""
    embed, head = nn.Embedding(32768, 256).cuda(), nn.Linear(256, 32768).cuda()
    optimizer = torch.optim.SGD([*embed.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        t = words(4, 256, 32768)
        F.cross_entropy(head(embed(t))[:, :-1].flatten(0, 1), t[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()


@case("idle_weights")
def frozen_network_in_the_loss():
    """A perceptual loss: backward goes through the frozen network."""
    import torchvision
    vgg = torchvision.models.vgg11(weights=None).features.cuda().eval().requires_grad_(False)
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 3, 3, padding=1)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        x = torch.randn(4, 3, 64, 64, device="cuda")
        with torch.no_grad():
            wanted = vgg(x)
        F.mse_loss(vgg(model(x)), wanted).backward()
        optimizer.step()
        optimizer.zero_grad()


@case("idle_weights")
def adapters():
    """LoRA: the frozen weights carry the gradients to the adapters below them."""
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(llama(6, 768, 2048, tie_word_embeddings=True), LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        t = words(2, 64, 2048)
        model(input_ids=t, labels=t).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("overlap")
def state_from_step_to_step():
    """Truncated backpropagation: the hidden state of a batch goes into the next one."""
    rnn, head = nn.LSTM(1024, 1024, batch_first=True).cuda(), nn.Linear(1024, 10).cuda()
    optimizer = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1)
    state = None
    for _ in range(5):
        out, state = rnn(torch.randn(2048, 2, 1024, device="cuda"), state)
        loss = head(out).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state = tuple(s.detach() for s in state)
        del out, loss


@case("overlap")
def prefetched_batches():
    """The next batch is copied to the device while the model works."""
    model = nn.Sequential(nn.Linear(8192, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    following = torch.randn(2048, 8192).cuda()
    for _ in range(5):
        batch, following = following, torch.randn(2048, 8192).cuda()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()


@case("kept")
def bounded_window():
    """A window over the last features, of which no more are kept after the third step."""
    model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(4)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    window = collections.deque(maxlen=3)
    for _ in range(14):
        x = torch.randn(4096, 1024, device="cuda")
        y = model(x)
        loss = y.square().mean() + sum((y.mean(0) * w).sum() for w in window)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        window.append(y.detach().mean(0))
        del loss, y


@case("kept")
def generation():
    """The cache of a generation grows with each token: that is what it is for."""
    model = llama(4, 512, 4096).eval()
    with torch.no_grad():
        model.generate(words(16, 64, 4096), max_new_tokens=24, do_sample=False, pad_token_id=0)


@case("late_del")
def generation_by_hand():
    model = llama(4, 512, 4096).eval()
    with torch.no_grad():
        t, past = words(16, 256, 4096), None
        for _ in range(8):
            out = model(input_ids=t, past_key_values=past, use_cache=True, logits_to_keep=1)
            past, t = out.past_key_values, out.logits[:, -1:].argmax(-1)
            del out


@case("no_grad")
def gradient_penalty():
    """WGAN-GP: backward through a gradient; the generator's pass in the critic's step is detached as it should be."""
    g = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 3072)).cuda()
    d = nn.Sequential(nn.Linear(3072, 1024), nn.LeakyReLU(), nn.Linear(1024, 1024), nn.LeakyReLU(), nn.Linear(1024, 1)).cuda()
    og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    for _ in range(4):
        real = torch.randn(4096, 3072, device="cuda")
        with torch.no_grad():
            fake = g(torch.randn(4096, 64, device="cuda"))
        x = (0.5 * real + 0.5 * fake).requires_grad_()
        slope, = torch.autograd.grad(d(x).sum(), x, create_graph=True)
        od.zero_grad()
        (d(fake).mean() - d(real).mean() + 10 * (slope.norm(2, 1) - 1).square().mean()).backward()
        od.step()
        og.zero_grad()
        (-d(g(torch.randn(4096, 64, device="cuda"))).mean()).backward()
        og.step()


@case("no_grad")
def attacked_in_evaluation():
    """An attack on a model in eval(): the gradient of its input is what is wanted."""
    import timm
    model = timm.create_model("resnet18", num_classes=10).cuda().eval()
    for _ in range(3):
        x = torch.randn(32, 3, 96, 96, device="cuda", requires_grad=True)
        slope, = torch.autograd.grad(F.cross_entropy(model(x), torch.zeros(32, dtype=torch.long, device="cuda")), x)
        with torch.no_grad():
            model(x + 0.01 * slope.sign())


@case("logits_in_float32")
def float_model():
    model = gpt2(2, 512, 32768)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        t = words(4, 256, 32768)
        model(t, labels=t).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("attention")
def fused_already():
    model = bert(4, 512, attn_implementation="sdpa")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        t = words(4, 512, 8192)
        model(input_ids=t, labels=torch.zeros(4, dtype=torch.long, device="cuda")).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("attention")
def contrast():
    """CLIP's loss: a product of all pairs and its softmax, which no fused attention computes."""
    a, b = nn.Linear(512, 256).cuda(), nn.Linear(512, 256).cuda()
    optimizer = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
    for _ in range(3):
        x, y = (F.normalize(net(torch.randn(4096, 512, device="cuda")), dim=-1) for net in (a, b))
        logits = x @ y.T
        labels = torch.arange(4096, device="cuda")
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del logits, loss


@case("shard_state")
def sharded_by_fsdp():
    def rank():
        from torch.distributed.fsdp import fully_shard
        model = llama(4, 512)
        for layer in model.model.layers:
            fully_shard(layer)
        fully_shard(model)
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(3):
            t = words(2, 64, 8192)
            model(input_ids=t, labels=t).loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    of_ranks(rank)


@case("shard_state")
def sharded_by_deepspeed():
    def rank():
        import deepspeed
        model = gpt2(8)
        engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
            "train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "Adam", "params": {"torch_adam": True}},
            "zero_optimization": {"stage": 2}, "bf16": {"enabled": True}})
        for _ in range(3):
            t = words(2, 64, 8192)
            engine.backward(engine(input_ids=t, labels=t).loss)
            engine.step()

    of_ranks(rank)


@case("shard_state")
def sharded_by_torch():
    def rank():
        from torch.distributed.optim import ZeroRedundancyOptimizer
        model = nn.parallel.DistributedDataParallel(gpt2(8))
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW)
        for _ in range(3):
            t = words(2, 64, 8192)
            model(t, labels=t).loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    of_ranks(rank)


@case("state_in_8_bits")
def in_8_bits_by_trainer():
    trainer(gpt2(8, 512), sentences(), optim="adamw_bnb_8bit", per_device_train_batch_size=2).train()


@case("state_in_8_bits")
def in_8_bits_by_torchao():
    from torchao.optim import AdamW8bit
    model = llama(4, 512)
    optimizer = AdamW8bit(model.parameters())
    for _ in range(3):
        t = words(2, 64, 8192)
        model(input_ids=t, labels=t).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("offload_state")
def on_the_host_already():
    from torchao.optim import CPUOffloadOptimizer
    model = llama(4, 512)
    optimizer = CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW)
    for _ in range(3):
        t = words(2, 64, 8192)
        model(input_ids=t, labels=t).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("offload_activations")
def nothing_saved():
    model = bert(6, 512).eval()
    with torch.no_grad():
        for _ in range(3):
            model(input_ids=words(16, 256, 8192))


if __name__ == "__main__":
    run()
