# SPDX-License-Identifier: Apache-2.0
"""Programs in which a kind of finding would be wrong: what it would have changed is needed there, or is done already."""
import collections
import copy
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

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


@case("unused_results")
def a_part_beside_the_whole():
    """A slice has a use, and so has all of the result."""
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        x = F.normalize(model(torch.randn(8192, 512, device="cuda")))
        ((x * torch.randn_like(x)).sum(1).mean() + x[:512].mean()).backward()
        optimizer.step()
        optimizer.zero_grad()


@case("weight_copies")
def target_network():
    """A copy of trained weights that follows them, and that passes use."""
    model = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(1024, 1024), nn.ReLU())]).cuda()
    target = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        x = torch.randn(64, 1024, device="cuda")
        with torch.no_grad():
            wanted = target(x)
        F.mse_loss(model(x), wanted).backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            torch._foreach_lerp_(list(target.parameters()), list(model.parameters()), 0.01)


@case("weight_copies")
def frozen_towers():
    """The second is made as a copy of the first, and gets weights of its own."""
    first = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(1024, 1024), nn.ReLU())]).cuda().requires_grad_(False)
    other = {k: torch.rand_like(v, device="cpu") for k, v in first.state_dict().items()}
    second, head = copy.deepcopy(first), nn.Linear(2048, 10).cuda()
    second.load_state_dict(other)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(64, 1024, device="cuda")
        head(torch.cat([first(x), second(x)], 1)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("weight_copies")
def way_of_an_update():
    """Weights before the step, which a metric compares with those after it."""
    model = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(1024, 1024), nn.ReLU())]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
        before = [p.detach().clone() for p in model.parameters()]
        optimizer.step()
        optimizer.zero_grad()
        print(torch.stack([(p - b).norm() for p, b in zip(model.parameters(), before)]).norm().shape)


@case("weight_copies")
def weights_of_an_optimizer_by_hand():
    """Updates are made in float32, and copied into the weights in 16 bits."""
    model = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(1024, 1024), nn.ReLU())]).cuda().bfloat16()
    masters = [p.detach().float() for p in model.parameters()]
    for _ in range(4):
        model(torch.randn(64, 1024, device="cuda", dtype=torch.bfloat16)).square().mean().backward()
        with torch.no_grad():
            for p, master in zip(model.parameters(), masters):
                master.sub_(p.grad.float(), alpha=0.1)
                p.copy_(master)
                p.grad = None


@case("expanded_views")
def few_rows_of_a_result():
    """The result is as large as the zeros of its gradient; it is gone when they are made."""
    net = nn.Sequential(nn.Linear(16, 4096), nn.ReLU()).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        x = net(torch.randn(8192, 16, device="cuda")).exp()
        chosen = x[torch.randint(8192, (64,), device="cuda")]
        del x
        chosen.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("expanded_views")
def copies_that_are_indexed():
    """repeat() makes the copies, which the gradient is as large as."""
    table = nn.Parameter(torch.randn(40, 64, device="cuda"))
    optimizer = torch.optim.SGD([table], lr=0.1)
    for _ in range(3):
        labels = torch.randint(40, (1, 1, 128 * 128), device="cuda").expand(1, 64, -1)
        torch.gather(table.unsqueeze(2).repeat(1, 1, 128 * 128), 0, labels).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("checkpoint")
def activations_in_turn():
    """What an activation returns is saved by the next layer, too."""
    first, second = (nn.Sequential(*[m for _ in range(3) for m in (nn.Linear(512, 512), nn.ReLU())]).cuda() for _ in range(2))
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    for _ in range(3):
        x = torch.randn(8192, 512, device="cuda")
        second(torch.cat([first(x), x])).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("set_to_none")
def flat_copy_of_gradients():
    """No gradient stays, but a copy of all of them does."""
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        model(torch.randn(16, 1024, device="cuda")).square().mean().backward()
        flat = torch.cat([p.grad.flatten() for p in model.parameters()])
        print(flat.norm().shape)
        optimizer.step()
        optimizer.zero_grad()


@case("set_to_none")
def layers_as_graphs():
    """A graph that is replayed writes gradients where they were when it was captured."""
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sample = torch.randn(16, 1024, device="cuda", requires_grad=True)
    for i in range(3):
        model[i] = torch.cuda.make_graphed_callables(model[i], (sample,))
    for _ in range(4):
        model[3:](model[:3](torch.randn(16, 1024, device="cuda")).repeat(256, 1)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("unused_results")
def losses_of_chunks():
    """Each chunk of the positions has its loss."""
    embed, head = nn.Embedding(16384, 256).cuda(), nn.Linear(256, 16384).cuda()
    optimizer = torch.optim.SGD([*embed.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        t, total = words(4, 512, 16384), 0.0
        for logits, of in zip(head(embed(t)).chunk(4, 1), t.chunk(4, 1)):
            total = total - logits.log_softmax(-1).gather(-1, of[..., None]).mean()
        total.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("mask_copies")
def windows_of_layers():
    """Each layer looks back as far as its own window."""
    from cases import Masked, masked
    masked(lambda batch, length: (torch.arange(length, device="cuda")[:, None] - torch.arange(length, device="cuda")).expand(batch, 1, length, length).contiguous(),
           [Masked(256, lambda far, i=i: (far < 0) | (far > 32 * i)) for i in range(12)])


@case("mask_copies")
def masks_of_layers():
    """One for each layer, sparse in its own way."""
    from cases import Masked, masked
    masked(lambda batch, length: [torch.rand(batch, 1, length, length, device="cuda") > 0.1 for _ in range(8)], [Masked(256, lambda all, i=i: all[i]) for i in range(8)], fused=True)


@case("mask_copies")
def parts_of_one_mask():
    from cases import Masked, masked
    masked(lambda batch, length: torch.ones(8, batch, 1, length, length, device="cuda", dtype=torch.bool).tril(), [Masked(256, lambda all, i=i: all[i] == 0) for i in range(8)], length=768)


@case("wide_copies")
def masks_in_another_type():
    """They are no activations: no weights are there whose type they would need."""
    from cases import Masked, masked
    masked(lambda *shape: torch.zeros(*shape, shape[1], device="cuda", dtype=torch.float16)[:, None], [Masked(256, lambda mask: mask.float()) for _ in range(6)], fused=True)


@case("in_rows")
def balanced_assignment():
    """Sinkhorn: rows are divided by sums of columns, again and again."""
    from cases import evaluated

    def measure(e):
        scores = torch.exp(e @ e.T / 0.1)
        for _ in range(3):
            scores = scores / scores.sum(1, keepdim=True)
            scores = scores / scores.sum(0, keepdim=True)
        scores.argmax(1)

    evaluated(measure)


@case("in_rows")
def both_directions():
    """A row's scores are weighed by a softmax over the column."""
    from cases import evaluated

    def measure(e):
        scores = e @ e.T
        (scores * (scores / 0.1).softmax(0)).argsort(1)[:, :3].clone()

    evaluated(measure)


@case("in_rows")
def above_the_mean():
    from cases import evaluated

    def measure(e):
        scores = e @ e.T
        (scores > scores.mean()).sum()

    evaluated(measure)


@case("in_rows")
def ranking_that_is_kept():
    from cases import evaluated
    kept = []
    evaluated(lambda e: kept.append((e @ e.T).argsort()), n=4096)


@case("in_rows")
def distances_in_a_loss():
    net = nn.Linear(512, 256).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(4096, 512, device="cuda")
        y = net(x)
        with torch.no_grad():
            far = torch.cdist(x, x)
            far.topk(8, largest=False)
        loss = ((y @ y.T) * far).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del far, loss, y


@case("kept_results")
def results_that_are_used_again():
    model, head = (nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024)).cuda() for _ in range(2))
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        kept = []
        for _ in range(6):
            out = model(torch.randn(4096, 1024, device="cuda"))
            out.square().mean().backward()
            kept.append(out.detach())
        for x in kept:
            head(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("prompt_logits")
def words_at_all_positions():
    """The best word of each position is counted; of the last one some are drawn, too."""
    words = nn.Sequential(nn.Embedding(16384, 512), nn.Linear(512, 512), nn.Linear(512, 16384)).cuda().half()
    with torch.no_grad():
        for length in (1024, 3072, 2048):
            t = torch.randint(16384, (2, length), device="cuda")
            logits = words(t)
            (logits.argmax(-1) == t).float().mean()
            torch.multinomial((logits[:, -1].float() / 0.7).softmax(-1), 1)


@case("gathered")
def features_for_a_head():
    """What passes without gradients made is what the training takes."""
    body = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024)).cuda()
    head = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(2):
        with torch.no_grad():
            features = torch.cat([body(torch.randn(2048, 512, device="cuda")) for _ in range(16)])
        head(features).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("gathered")
def text_that_grows():
    """Each pass takes all that was made so far."""
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024)).cuda()
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(2048, 1024, device="cuda")
            for _ in range(12):
                x = torch.cat([x, model(x)[-2048:]])


@case("kept_results")
def stage_of_a_pipeline():
    """Several micro-batches wait for their backward passes while others have theirs."""
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        waiting = []
        for i in range(14):
            if i >= 4:
                x, y = waiting.pop(0)
                y.backward(torch.ones_like(y))
            if i < 10:
                x = torch.randn(4096, 1024, device="cuda").requires_grad_()
                waiting.append((x, model(x)))
        optimizer.step()
        optimizer.zero_grad()


@case("backward_each")
def losses_of_a_recurrent_network():
    w, u, v = (torch.randn(1024, 1024, device="cuda", requires_grad=True) for _ in range(3))
    optimizer = torch.optim.SGD([w, u, v], lr=0.1)
    for _ in range(3):
        h, total = torch.zeros(1024, 1024, device="cuda").requires_grad_(), 0
        for _ in range(10):
            x = torch.randn(1024, 1024, device="cuda")
            h = torch.tanh(x @ w + h @ u)
            total = total + (h @ v - x).square().mean()
        total.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("backward_each")
def penalties_of_layers():
    """A scalar for each layer, of what comes before its activation: no graph takes that again."""
    layers = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(8)).cuda()
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    for _ in range(3):
        x, penalty = torch.randn(4096, 1024, device="cuda").requires_grad_(), 0
        for layer in layers:
            h = layer(x)
            penalty = penalty + h.pow(2).mean()
            x = h.relu()
        (penalty + x.mean()).backward()
        optimizer.step()
        optimizer.zero_grad()


@case("backward_each")
def chunks_of_one_contrast():
    """Each chunk has a figure of its own; the loss is of all of them."""
    model = nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        norms, found = [], []
        for chunk in torch.randn(8192, 512, device="cuda").requires_grad_().split(1024):
            z = model(chunk)
            norms.append(z.square().mean())
            found.append(F.normalize(z, dim=-1))
        e = torch.cat(found)
        F.cross_entropy(e @ e.T * 20, torch.arange(len(e), device="cuda")).backward()
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


class Adapted(torch.autograd.Function):
    """Keeps a frozen weight in ctx and not with save_for_backward, as fused LoRA kernels do."""

    @staticmethod
    def forward(ctx, x, weight, down, up):
        ctx.weight = weight
        ctx.save_for_backward(x, down, up)
        return x @ weight + x @ down @ up

    @staticmethod
    def backward(ctx, g):
        x, down, up = ctx.saved_tensors
        below = g @ up.T
        return g @ ctx.weight.T + below @ down.T, None, x.T @ below, (x @ down).T @ g


@case("idle_weights")
def adapters_of_one_function():
    """Backward multiplies by the frozen weights, which no graph holds."""
    network = nn.ParameterList(nn.Parameter(torch.randn(2048, 2048), requires_grad=False) for _ in range(6)).cuda()
    adapters = [(torch.randn(2048, 8, device="cuda", requires_grad=True), torch.zeros(8, 2048, device="cuda", requires_grad=True)) for _ in network]
    optimizer = torch.optim.AdamW([p for pair in adapters for p in pair])
    for _ in range(3):
        x = torch.randn(512, 2048, device="cuda")
        for weight, pair in zip(network, adapters):
            x = F.silu(Adapted.apply(x, weight, *pair))
        x.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Linear(2048, 2048, bias=False).requires_grad_(False)
        self.down, self.up = nn.Linear(2048, 8, bias=False), nn.Linear(8, 2048, bias=False)

    def forward(self, x):
        return F.silu(self.weight(x) + self.up(self.down(x)))


@case("idle_weights")
def adapters_in_a_checkpoint():
    """Weights in float32 under autocast: graphs hold copies of them in 16 bits, which a checkpoint makes again."""
    network = nn.ModuleList(Layer() for _ in range(6)).cuda()
    optimizer = torch.optim.AdamW([p for p in network.parameters() if p.requires_grad])
    for _ in range(4):
        x = torch.randn(512, 2048, device="cuda", requires_grad=True)
        with torch.autocast("cuda", torch.bfloat16):
            for layer in network:
                x = checkpoint(layer, x, use_reentrant=True)
        x.float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("frozen_graph")
def soft_prompt():
    """A trained prompt before a frozen model, whose embeddings were made to require grad too."""
    model, prompt = gpt2(4, 512, 2048), torch.zeros(8, 512, device="cuda", requires_grad=True)
    model.requires_grad_(False)
    model.enable_input_require_grads()
    optimizer = torch.optim.AdamW([prompt])
    for _ in range(3):
        t = words(8, 128, 2048)
        x = torch.cat([prompt.expand(8, -1, -1), model.get_input_embeddings()(t)], 1)
        loss = F.cross_entropy(model(inputs_embeds=x).logits[:, 8:-1].flatten(0, 1), t[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def adapted(**checkpointing):
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(llama(6, 768, 2048), LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    model.enable_input_require_grads()
    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=checkpointing)
    model.train()
    optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
    for _ in range(3):
        t = words(8, 256, 2048)
        model(input_ids=t, labels=t).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("frozen_graph")
def adapters_under_reentrant_checkpoints():
    """The Function of a checkpoint needs an input that requires grad; the adapters inside are used in backward."""
    adapted(use_reentrant=True)


@case("frozen_graph")
def adapters_under_checkpoints():
    adapted(use_reentrant=False)


@case("frozen_graph")
def frozen_layers_below_trained_ones():
    """One loop over all layers: the lower ones are frozen, the embedding is trained."""
    net, embed = nn.ModuleList(nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)) for _ in range(6)).cuda(), nn.Embedding(2048, 512).cuda()
    net[:4].requires_grad_(False)
    optimizer = torch.optim.AdamW([*embed.parameters(), *net[4:].parameters()])
    for _ in range(3):
        x = embed(words(32, 256, 2048))
        for layer in net:
            x = x + layer(x)
        loss = x.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("frozen_graph")
def gradients_of_features():
    """Class activation maps: nothing is trained, the gradient of a layer's result is wanted."""
    lower, upper = (nn.Sequential(nn.Conv2d(a, b, 3, 1, 1), nn.ReLU(), nn.Conv2d(b, b, 3, 1, 1)).cuda().requires_grad_(False) for a, b in ((3, 64), (64, 64)))
    for _ in range(3):
        features = lower(torch.randn(4, 3, 256, 256, device="cuda")).requires_grad_()
        upper(features).mean((2, 3)).amax(1).sum().backward()
        (features.grad.mean((2, 3), keepdim=True) * features).sum(1).relu().cpu()
        del features


@case("frozen_graph")
def adapter_in_a_second_phase():
    """A head is trained on a frozen tower; then an adapter in front of the tower is trained too."""
    stem, tower, head = nn.Linear(512, 512).cuda(), nn.Sequential(*[nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)) for _ in range(4)]).cuda(), nn.Linear(512, 10).cuda()
    adapter = nn.Linear(512, 512).cuda()
    for part in (stem, tower):
        part.requires_grad_(False)
    stem.register_forward_hook(lambda module, args, out: out.requires_grad_() if out.is_leaf else out)
    optimizer = torch.optim.AdamW([*adapter.parameters(), *head.parameters()])
    for step in range(6):
        x = torch.randn(4096, 512, device="cuda")
        head(tower(stem(x if step < 3 else adapter(x)))).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def linears(n=6, width=4096):
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(n)]).cuda()


@case("one_by_one")
def gradients_of_two_tasks():
    """Those of the first loss are projected on those of the second, whose backward pass comes between."""
    model = linears()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.randn(16, 4096, device="cuda")).square().mean().backward()
        first = [p.grad.clone() for p in model.parameters()]
        optimizer.zero_grad()
        model(torch.randn(16, 4096, device="cuda")).abs().mean().backward()
        dot = sum((a * p.grad).sum() for a, p in zip(first, model.parameters()))
        for a, p in zip(first, model.parameters()):
            p.grad.add_(a * dot.clamp(max=0))
        optimizer.step()
        optimizer.zero_grad()
        del first


@case("one_by_one")
def largest_of_all():
    """Only the largest gradients of the whole model are applied: the threshold needs all sizes, and each is used again."""
    model = linears()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.randn(16, 4096, device="cuda")).square().mean().backward()
        sizes = [p.grad.abs() for p in model.parameters()]
        least = torch.stack([s.amax() for s in sizes]).amin()
        for s, p in zip(sizes, model.parameters()):
            p.grad.mul_(s >= least)
        del sizes
        optimizer.step()
        optimizer.zero_grad()


@case("one_by_one")
def sharp_minima():
    """SAM: the step to the worst point near by is undone after a second backward pass."""
    model = linears()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(16, 4096, device="cuda")
        model(x).square().mean().backward()
        with torch.no_grad():
            size = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            steps = [p.grad * (0.05 / (size + 1e-12)) for p in model.parameters()]
            for p, s in zip(model.parameters(), steps):
                p.add_(s)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        with torch.no_grad():
            for p, s in zip(model.parameters(), steps):
                p.sub_(s)
        optimizer.step()
        optimizer.zero_grad()
        del steps


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


@case("held")
def judged_at_the_end():
    """A network that labels the data before the training, and judges the result behind it."""
    judge, data = nn.Sequential(*[nn.Sequential(nn.Linear(2048, 2048), nn.ReLU()) for _ in range(8)]).cuda(), torch.randn(2048, 2048)
    with torch.no_grad():
        labels = judge(data.cuda()).argmax(1)
    model = nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 2048)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data.cuda()), labels).backward()
        optimizer.step()
    with torch.no_grad():
        print((judge(model(data.cuda())).argmax(1) == labels).sum().item())


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


class Pairs(nn.Module):
    """Two towers in one module; what comes of the first alone, or by checkpoints, or in other passes, is read, too."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.left, self.right = (nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(6)]) for _ in range(2))

    def forward(self, x, turn):
        if self.kind == "remade":
            return F.mse_loss(checkpoint(self.left, x, use_reentrant=False), self.right(x))
        if self.kind == "in_turns":
            y, z = self.left(x), self.right(x)
            return F.mse_loss(y, z.detach()) if turn % 2 else F.mse_loss(y.detach(), z)
        return self.left(x).square().mean() + self.right(x).clamp(min=0).mean()


def towers(kind):
    net = Pairs(kind).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for turn in range(6):
        optimizer.zero_grad()
        net(torch.randn(8192, 512, device="cuda"), turn).backward()
        optimizer.step()


@case("no_grad")
def towers_of_one_loss():
    towers("sum")


@case("no_grad")
def towers_remade():
    towers("remade")


@case("no_grad")
def towers_in_turns():
    """Each is cut off every other time: which one cannot be said once for its line."""
    towers("in_turns")


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


@case("no_grad")
def inverted_by_hand():
    """A code follows the gradient of a decoder's error, and the graph of that gradient is made, too."""
    decoder = nn.Sequential(nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 3072)).cuda().eval()
    goal, code = torch.rand(4096, 3072, device="cuda"), torch.zeros(4096, 64, device="cuda")
    for _ in range(4):
        code = code.detach().requires_grad_()
        slope, = torch.autograd.grad((decoder(code) - goal).square().sum(), code, create_graph=True)
        code = code - 0.01 * slope


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, slope):
        s = torch.sigmoid(ctx.x)
        return slope * (s + ctx.x * s * (1 - s))


@case("late_del")
def inputs_on_ctx():
    """A Function keeps its input as an attribute, which its backward pass reads."""
    layers = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(4)).cuda()
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(8192, 1024, device="cuda")
        for layer in layers:
            x = Gate.apply(layer(x))
        loss = x.mean()
        del x
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("gathered")
def grids_of_each_size():
    """Coordinates are made once for each size, and read again by every later pass of that size."""
    grids, net = {}, nn.Conv2d(3, 16, 3, 1, 1).cuda()
    with torch.no_grad():
        for i in range(18):
            y = net(torch.rand(1, 3, 240 + 16 * (i % 6), 320, device="cuda"))
            if y.shape not in grids:
                grids[y.shape] = torch.stack([torch.arange(y.shape[2], device="cuda")[:, None].expand(y.shape[2:]).float()] * 16)
            print((y + grids[y.shape]).mean().item())


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


class Messages(nn.Module):
    """Adds up messages between nodes: index_add() saves them for their shape alone."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(64, 64)

    def forward(self, x, source, target, share):
        messages = self.lin(x)[source] * (share[source] + 1).rsqrt()[:, None]
        return torch.zeros_like(x).index_add(0, target, messages) / (share + 1).sqrt()[:, None]


class Nodes(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.out = nn.ModuleList(Messages() for _ in range(3)), nn.Linear(64, 4)

    def forward(self, x, *graph):
        for layer in self.layers:
            x = layer(x, *graph).relu()
        return self.out(x)


@case("no_grad")
def summed_messages():
    model = Nodes().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        edges = torch.randint(5000, (2, 100000), device="cuda")
        model(torch.randn(5000, 64, device="cuda"), *edges, torch.rand(5000, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    run()
