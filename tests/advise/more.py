# SPDX-License-Identifier: Apache-2.0
"""Further programs in the manner of each framework's own examples, two and more for a kind of finding; as others.py."""
import contextlib
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
import torch.nn.functional as F
from torch import nn

from pairs import AFTER, case, of_ranks, run


def words(batch, length, vocab):
    return torch.randint(vocab, (batch, length), device="cuda")


def gpt2(layers=4, width=512, vocab=8192, **more):
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=width, n_head=8, vocab_size=vocab, **more)).cuda()


def bert(layers=6, width=512, **more):
    from transformers import BertConfig, BertForSequenceClassification
    return BertForSequenceClassification(BertConfig(num_hidden_layers=layers, hidden_size=width, num_attention_heads=8, intermediate_size=4 * width,
                                                    vocab_size=8192, **more)).cuda()


def llama(layers=4, width=512, vocab=8192, **more):
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=layers, hidden_size=width, intermediate_size=2 * width, num_attention_heads=8,
                                        num_key_value_heads=8, vocab_size=vocab, **more)).cuda()


def trainer(model, rows, kind=None, **arguments):
    from transformers import Trainer, TrainingArguments
    arguments = {"per_device_train_batch_size": 4, "max_steps": 4, **arguments}
    args = TrainingArguments("out", report_to=[], save_strategy="no", logging_steps=100, disable_tqdm=True, **arguments)
    return (kind or Trainer)(model=model, args=args, train_dataset=rows, eval_dataset=rows)


def sentences(n=16, length=64, vocab=8192):
    return [{"input_ids": (t := torch.randint(vocab, (length,))), "labels": t} for _ in range(n)]


# ---- weights that wait ----

@case("idle_weights")
def trainer_distils():
    """A Trainer with a teacher, as the guide to distillation has it."""
    from transformers import Trainer
    teacher = gpt2(12, 768).eval().requires_grad_(False)

    class Distiller(Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, **_):
            out = model(**inputs)
            if AFTER:
                teacher.cuda()
            with torch.no_grad():
                wanted = teacher(**inputs).logits
            if AFTER:
                teacher.cpu()
            soft = F.kl_div(F.log_softmax(out.logits / 2, -1), F.softmax(wanted / 2, -1), reduction="batchmean")
            return (soft + out.loss, out) if return_outputs else soft + out.loss

    trainer(gpt2(8, 768), sentences(length=16), Distiller, optim="adamw_torch_fused", per_device_train_batch_size=2).train()


@case("idle_weights")
def diffusers_text_to_image():
    """The loop of diffusers' train_text_to_image.py: a frozen text encoder and image encoder before the network that is trained."""
    from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel
    text = CLIPTextModel(CLIPTextConfig(vocab_size=4096, hidden_size=512, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=8)).cuda()
    vae = AutoencoderKL(block_out_channels=(64, 128), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2).cuda()
    unet = UNet2DConditionModel(sample_size=32, in_channels=4, out_channels=4, block_out_channels=(128, 256), cross_attention_dim=512,
                                down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D")).cuda()
    text.requires_grad_(False)
    vae.requires_grad_(False)
    noise_scheduler = DDPMScheduler()
    optimizer = torch.optim.AdamW(unet.parameters(), fused=True)
    for _ in range(3):
        with torch.no_grad():
            latents = vae.encode(torch.randn(2, 3, 64, 64, device="cuda")).latent_dist.sample()
            states = text(words(2, 32, 4096))[0]
        noise = torch.randn_like(latents)
        t = torch.randint(1000, (2,), device="cuda")
        if AFTER:
            vae.cpu(), text.cpu()
        loss = F.mse_loss(unet(noise_scheduler.add_noise(latents, noise, t), t, states).sample, noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if AFTER:
            vae.cuda(), text.cuda()


@case("idle_weights")
def timm_average():
    import timm
    from timm.optim import create_optimizer_v2
    from timm.utils import ModelEmaV3
    model = timm.create_model("vit_small_patch16_224", num_classes=10, depth=24).cuda()
    ema = ModelEmaV3(model)
    optimizer = create_optimizer_v2(model, "sgd", lr=0.1, momentum=0.9, foreach=False)
    for _ in range(4):
        loss = model(torch.randn(24, 3, 224, 224, device="cuda")).square().mean()
        if AFTER:
            ema.module.cpu()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if AFTER:
            ema.module.cuda()
        ema.update(model)


# ---- one step's results beside the next step's ----

@case("overlap")
def accelerate_loop():
    from accelerate import Accelerator
    accelerator = Accelerator()
    model = gpt2(2, 256, 32768)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    def train_step(batch):
        outputs = model(input_ids=batch, labels=batch)
        accelerator.backward(outputs.loss)
        optimizer.step()
        optimizer.zero_grad()
        return {"loss": outputs.loss.detach(), "probabilities": outputs.logits.detach().softmax(-1)}

    for _ in range(4):
        metrics = train_step(words(8, 256, 32768))
        print(metrics["loss"].item())
        if AFTER:
            del metrics


@case("overlap")
def images_for_the_log():
    """A restoration of images: input, result and target side by side, for a log that shows them now and then."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 3, 3, padding=1)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        image, target = torch.rand(16, 3, 512, 512, device="cuda"), torch.rand(16, 3, 512, 512, device="cuda")
        restored = model(image)
        loss = F.l1_loss(restored, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown = torch.cat([image, restored.detach(), target], 3).clamp(0, 1)
        print(loss.item(), shown.shape)
        del image, target, restored, loss
        if AFTER:
            del shown


# ---- kept for ever ----

@case("kept")
def accelerate_predictions():
    from accelerate import Accelerator
    accelerator = Accelerator()
    model = accelerator.prepare(gpt2(2, 256, 8192)).eval()
    predictions = []
    for _ in range(10):
        with torch.no_grad():
            logits = accelerator.gather_for_metrics(model(words(4, 256, 8192)).logits)
        predictions.append(logits.cpu() if AFTER else logits)
        del logits


@case("kept")
def torchmetrics_states():
    """A metric whose state is a list of all predictions, on the device unless compute_on_cpu is set."""
    from torchmetrics.classification import MulticlassAUROC
    metric = MulticlassAUROC(1000, thresholds=None, validate_args=False, compute_on_cpu=AFTER).cuda()
    model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1000)).cuda().eval()
    for _ in range(12):
        with torch.no_grad():
            y = model(torch.randn(4096, 1024, device="cuda")).softmax(-1)
            metric.update(y, torch.randint(1000, (4096,), device="cuda"))
            del y


@case("kept")
def lightning_epoch_outputs():
    """What Lightning's guide to on_train_epoch_end has: a list of each step's results."""
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.head = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(4)]), nn.Linear(1024, 1024)
            self.seen = []

        def training_step(self, batch, _):
            features = self.net(batch[0])
            self.seen.append(features.detach().cpu() if AFTER else features.detach())
            return self.head(features).square().mean()

        def on_train_epoch_end(self):
            self.seen.clear()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(10 * 2048, 1024)), batch_size=2048)
    lightning.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="gpu", devices=1).fit(Module(), data)


# ---- a name that holds what no graph needs ----

@case("late_del")
def timm_logits():
    """The logits are held through backward, of which the loss has saved only the log-softmax."""
    import timm
    model = timm.create_model("resnet18", num_classes=21841).cuda()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        x, target = torch.randn(1024, 3, 32, 32, device="cuda"), torch.randint(21841, (1024,), device="cuda")
        optimizer.zero_grad()
        output = model(x)
        loss = loss_fn(output, target)
        if AFTER:
            del output
        loss.backward()
        optimizer.step()
        loss = output = None


@case("late_del")
def transformers_translation():
    from transformers import T5Config, T5ForConditionalGeneration
    model = T5ForConditionalGeneration(T5Config(d_model=256, d_ff=512, d_kv=32, num_layers=2, num_heads=8, vocab_size=32128, decoder_start_token_id=0, pad_token_id=0)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        t = words(8, 256, 32128)
        outputs = model(input_ids=t, labels=t)
        loss = outputs.loss
        if AFTER:
            del outputs
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss = outputs = None


# ---- passes that no backward pass follows ----

@case("no_grad")
def timm_validates():
    import timm
    model = timm.create_model("vit_tiny_patch16_224", num_classes=10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        model.train()
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(torch.randn(8, 3, 224, 224, device="cuda")), torch.randint(10, (8,), device="cuda")).backward()
            optimizer.step()
        model.eval()
        right = 0
        with torch.set_grad_enabled(not AFTER):
            for _ in range(3):
                right += (model(torch.randn(64, 3, 224, 224, device="cuda")).argmax(-1) == 0).sum().item()


@case("no_grad")
def transformers_evaluates():
    model = bert()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def evaluate(model, batches):
        model.eval()
        with torch.no_grad() if AFTER else contextlib.nullcontext():
            total = sum(model(input_ids=b, labels=torch.zeros(len(b), dtype=torch.long, device="cuda")).loss.item() for b in batches)
        model.train()
        return total

    for _ in range(2):
        for _ in range(3):
            t = words(4, 128, 8192)
            model(input_ids=t, labels=torch.zeros(4, dtype=torch.long, device="cuda")).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        print(evaluate(model, [words(32, 256, 8192) for _ in range(3)]))


@case("no_grad")
def diffusers_samples():
    """A sampling loop by hand, the graph of each step thrown away with its sample."""
    from diffusers import DDPMScheduler, UNet2DModel
    model = UNet2DModel(sample_size=32, block_out_channels=(64, 64, 128, 128)).cuda().eval()
    scheduler = DDPMScheduler()
    scheduler.set_timesteps(5)
    with torch.no_grad() if AFTER else contextlib.nullcontext():
        sample = torch.randn(16, 3, 32, 32, device="cuda")
        for t in scheduler.timesteps:
            sample = scheduler.step(model(sample, t).sample, t, sample).prev_sample.detach()


# ---- logits ----

@case("logits_in_float32")
def autocast_loss():
    """nanoGPT's step: the whole forward pass with its loss under autocast."""
    model = gpt2(2, 512, 32768, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        t = words(4, 512, 32768)
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(t).logits
            with torch.autocast("cuda", enabled=False) if AFTER else contextlib.nullcontext():
                loss = F.cross_entropy(logits.view(-1, 32768), t.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del logits, loss


@case("logits_in_float32")
def accelerate_upcasts():
    """Accelerate's mixed precision makes outputs float32; without that wrapper they stay as autocast made them."""
    from accelerate import Accelerator
    accelerator = Accelerator(mixed_precision="bf16")
    model = gpt2(2, 512, 32768)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    if AFTER:
        model = accelerator.unwrap_model(model, keep_fp32_wrapper=False)
    for _ in range(3):
        t = words(4, 512, 32768)
        with torch.autocast("cuda", torch.bfloat16) if AFTER else contextlib.nullcontext():
            logits = model(t).logits
        loss = F.cross_entropy(logits.view(-1, 32768), t.view(-1))
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        del logits, loss


# ---- attention ----

@case("attention")
def timm_without_fused():
    import timm
    timm.layers.set_fused_attn(AFTER)
    model = timm.create_model("vit_tiny_patch16_224", num_classes=10, img_size=384).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 3, 384, 384, device="cuda")).square().mean().backward()
        optimizer.step()


@case("attention")
def diffusers_processor():
    from diffusers import UNet2DConditionModel
    from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0
    unet = UNet2DConditionModel(sample_size=32, in_channels=4, out_channels=4, block_out_channels=(64, 128), cross_attention_dim=128,
                                down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D")).cuda()
    unet.set_attn_processor(AttnProcessor2_0() if AFTER else AttnProcessor())
    optimizer = torch.optim.SGD(unet.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        unet(torch.randn(2, 4, 32, 32, device="cuda"), 5, torch.randn(2, 77, 128, device="cuda")).sample.square().mean().backward()
        optimizer.step()


@case("attention")
def torch_attention_with_weights():
    """nn.MultiheadAttention gives its weights unless need_weights=False."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.mlp, self.attention = nn.LayerNorm(256), nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)), nn.MultiheadAttention(256, 8, batch_first=True)

        def forward(self, x):
            y = self.norm(x)
            x = x + self.attention(y, y, y, need_weights=not AFTER)[0]
            return x + self.mlp(x)

    model = nn.Sequential(*[Layer() for _ in range(4)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 1024, 256, device="cuda")).square().mean().backward()
        optimizer.step()


# ---- the optimizer's state ----

def data_parallel(make, inputs):
    import torch.distributed as dist
    from torch.distributed.optim import ZeroRedundancyOptimizer
    model = nn.parallel.DistributedDataParallel(make())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW) if AFTER else torch.optim.AdamW(model.parameters())
    for _ in range(4):
        out = model(**inputs())
        out.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del out
    dist.barrier()


@case("shard_state")
def transformers_data_parallel():
    def inputs():
        t = words(2, 64, 8192)
        return {"input_ids": t, "labels": t}

    of_ranks(lambda: data_parallel(lambda: gpt2(8), inputs))


@case("shard_state")
def timm_data_parallel():
    def rank():
        import timm
        from torch.distributed.optim import ZeroRedundancyOptimizer
        model = nn.parallel.DistributedDataParallel(timm.create_model("vit_small_patch16_224", num_classes=10).cuda())
        optimizer = (ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9) if AFTER else
                     torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.randn(2, 3, 224, 224, device="cuda")).square().mean().backward()
            optimizer.step()

    of_ranks(rank)


@case("state_in_8_bits")
def trainer_8_bits():
    trainer(gpt2(12, 1024), sentences(), optim="adamw_bnb_8bit" if AFTER else "adamw_torch", per_device_train_batch_size=2).train()


@case("state_in_8_bits")
def torchao_8_bits():
    from torchao.optim import AdamW8bit
    model = llama(8, 768)
    optimizer = AdamW8bit(model.parameters()) if AFTER else torch.optim.AdamW(model.parameters())
    for _ in range(3):
        t = words(2, 64, 8192)
        model(input_ids=t, labels=t).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("offload_state")
def torchao_offload():
    from torchao.optim import CPUOffloadOptimizer
    model = llama(8, 768)
    optimizer = CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW) if AFTER else torch.optim.AdamW(model.parameters())
    for _ in range(3):
        t = words(2, 64, 8192)
        model(input_ids=t, labels=t).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("offload_state")
def bitsandbytes_on_the_host():
    """Diffusers' scripts take any optimizer; here its parameters are copies on the host."""
    from diffusers import UNet2DModel
    model = UNet2DModel(sample_size=32, block_out_channels=(128, 256, 256, 512)).cuda()
    params = list(model.parameters())
    copies = [p.detach().cpu() for p in params] if AFTER else params
    optimizer = torch.optim.AdamW(copies)
    for _ in range(3):
        model(torch.randn(2, 3, 32, 32, device="cuda"), 5).sample.square().mean().backward()
        if AFTER:
            for p, c in zip(params, copies):
                c.grad, p.grad = p.grad.cpu(), None
        optimizer.step()
        optimizer.zero_grad()
        if AFTER:
            for p, c in zip(params, copies):
                p.data.copy_(c)


# ---- activations on the host ----

@case("offload_activations")
def transformers_on_the_host():
    model = bert(6, 512)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        t = words(16, 256, 8192)
        with torch.autograd.graph.save_on_cpu() if AFTER else contextlib.nullcontext():
            loss = model(input_ids=t, labels=torch.zeros(16, dtype=torch.long, device="cuda")).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("offload_activations")
def diffusers_on_the_host():
    from diffusers import UNet2DModel
    model = UNet2DModel(sample_size=32, block_out_channels=(64, 64, 128, 128)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        with torch.autograd.graph.save_on_cpu(pin_memory=True) if AFTER else contextlib.nullcontext():
            loss = model(torch.randn(16, 3, 32, 32, device="cuda"), 5).sample.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    run()
