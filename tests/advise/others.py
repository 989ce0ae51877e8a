# SPDX-License-Identifier: Apache-2.0
"""Programs on frameworks, with the first finding that they have a switch for followed (AFTER); as cases.py, under
.venv-frameworks."""
import functools
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from pairs import AFTER, case, run


def tokens(batch, length, vocab):
    return torch.randint(vocab, (batch, length), device="cuda")


@case("checkpoint")
def transformers_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(n_layer=6, n_embd=512, n_head=8, vocab_size=8192)).cuda()
    if AFTER:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        t = tokens(8, 512, 8192)
        model(t, labels=t).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("attention")
def transformers_llama_eager():
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(num_hidden_layers=4, hidden_size=512, intermediate_size=1024, num_attention_heads=8, num_key_value_heads=4,
                         vocab_size=4096, attn_implementation="sdpa" if AFTER else "eager")
    model = LlamaForCausalLM(config).cuda().to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        t = tokens(8, 1024, 4096)
        model(t, labels=t).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("fused_optimizer")
def transformers_trainer():
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
    model = GPT2LMHeadModel(GPT2Config(n_layer=12, n_embd=1024, n_head=8, vocab_size=8192))
    rows = [{"input_ids": torch.randint(8192, (64,)), "labels": torch.randint(8192, (64,))} for _ in range(16)]
    args = TrainingArguments("out", per_device_train_batch_size=2, max_steps=4, report_to=[], save_strategy="no", logging_steps=100,
                             optim="adamw_torch_fused" if AFTER else "adamw_torch")
    Trainer(model, args, train_dataset=rows).train()


@case("gathered")
def trainer_evaluates():
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=256, n_head=4, vocab_size=16384))
    rows = [{"input_ids": torch.randint(16384, (128,)), "labels": torch.randint(16384, (128,))} for _ in range(96)]
    args = TrainingArguments("out", per_device_train_batch_size=4, per_device_eval_batch_size=8, max_steps=4, eval_strategy="steps", eval_steps=2, report_to=[],
                             save_strategy="no", logging_steps=100, eval_accumulation_steps=1 if AFTER else None)
    Trainer(model, args, train_dataset=rows, eval_dataset=rows, compute_metrics=lambda p: {"right": float((p.predictions.argmax(-1) == p.label_ids).mean())}).train()


@case("wide_copies")
def peft_in_float32():
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(num_hidden_layers=6, hidden_size=1024, intermediate_size=2816, num_attention_heads=16, num_key_value_heads=4, vocab_size=4096,
                         use_cache=False)
    model = get_peft_model(LlamaForCausalLM(config).to(torch.bfloat16), LoraConfig(r=16, target_modules="all-linear"), autocast_adapter_dtype=not AFTER).cuda()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    for _ in range(3):
        t = tokens(4, 1024, 4096)
        model(input_ids=t, labels=t).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("mask_copies")
def transformers_padded():
    """Texts of different lengths: transformers gives scaled_dot_product_attention booleans, or what it is given in 4 dimensions."""
    from transformers import BertConfig, BertForSequenceClassification
    model = BertForSequenceClassification(BertConfig(vocab_size=4096, hidden_size=256, num_hidden_layers=8, num_attention_heads=8, intermediate_size=512)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        t, mask = tokens(8, 512, 4096), torch.ones(8, 512, dtype=torch.long, device="cuda")
        mask[:, 400:] = 0
        if AFTER:
            mask = torch.zeros(8, 1, 512, 512, device="cuda").masked_fill(mask[:, None, None] == 0, -torch.inf)
        model(input_ids=t, attention_mask=mask, labels=torch.zeros(8, dtype=torch.long, device="cuda")).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("mask_copies")
def llama_padded():
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=8, num_attention_heads=8, vocab_size=1024)).cuda().bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        t, mask = tokens(8, 512, 1024), torch.ones(8, 512, dtype=torch.long, device="cuda")
        mask[:, 400:] = 0
        if AFTER:
            seen = mask.bool()[:, None, None] & torch.ones(512, 512, dtype=torch.bool, device="cuda").tril()
            mask = torch.zeros(8, 1, 512, 512, device="cuda", dtype=torch.bfloat16).masked_fill(~seen, -torch.inf)
            del seen
        model(input_ids=t, attention_mask=mask, labels=t).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("prompt_logits")
def llama_draws_words():
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(num_hidden_layers=2, hidden_size=512, intermediate_size=1024, num_attention_heads=8, num_key_value_heads=2, vocab_size=32768)
    model = LlamaForCausalLM(config).cuda().half()
    with torch.no_grad():
        for length in (2048, 6144, 4096):
            t, past = tokens(1, length, 32768), None
            for _ in range(4):
                out = model(t, past_key_values=past, use_cache=True, logits_to_keep=1 if AFTER else 0)
                t, past = torch.multinomial((out.logits[:, -1].float() / 0.7).softmax(-1), 1), out.past_key_values


@case("checkpoint")
def timm_vit():
    import timm
    model = timm.create_model("vit_small_patch16_224", num_classes=10).cuda()
    model.set_grad_checkpointing(AFTER)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(32, 3, 224, 224, device="cuda")).sum().backward()
        optimizer.step()


@case("no_grad")
def torchvision_resnet():
    import torchvision
    model = torchvision.models.resnet50().cuda().eval()
    with torch.set_grad_enabled(not AFTER):
        for _ in range(3):
            print(model(torch.randn(32, 3, 224, 224, device="cuda")).argmax(-1).shape)


@case("checkpoint")
def diffusers_unet():
    from diffusers import UNet2DModel
    model = UNet2DModel(sample_size=64, block_out_channels=(64, 64, 128, 128)).cuda()
    if AFTER:
        model.enable_gradient_checkpointing()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        x = torch.randn(8, 3, 64, 64, device="cuda")
        model(x, torch.randint(1000, (8,), device="cuda")).sample.square().mean().backward()
        optimizer.step()


@case("fused_optimizer")
def lightning_fit():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(8)])

        def training_step(self, batch, _):
            return self.net(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), fused=AFTER or None)

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 2048)), batch_size=16)
    lightning.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="gpu", devices=1).fit(Module(), data)


@case("state_in_8_bits")
def bitsandbytes_adam():
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(n_layer=12, n_embd=1024, n_head=8, vocab_size=8192)).cuda()
    if AFTER:
        import bitsandbytes
        optimizer = bitsandbytes.optim.AdamW8bit(model.parameters())
    else:
        optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        t = tokens(2, 64, 8192)
        model(t, labels=t).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("checkpoint")
def gan():
    def net(*widths):
        return nn.Sequential(*[nn.Sequential(nn.ConvTranspose2d(a, b, 4, 2, 1), nn.BatchNorm2d(b), nn.ReLU()) for a, b in zip(widths, widths[1:])]).cuda()

    def critic(*widths):
        return nn.Sequential(*[nn.Sequential(nn.Conv2d(a, b, 4, 2, 1), nn.LeakyReLU()) for a, b in zip(widths, widths[1:])]).cuda()

    g, d = net(128, 64, 64, 32, 3), critic(3, 32, 64, 64, 1)
    og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    for block in [*g, *d] if AFTER else []:
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
    for _ in range(4):
        real, fake = torch.randn(64, 3, 128, 128, device="cuda"), g(torch.randn(64, 128, 8, 8, device="cuda"))
        od.zero_grad()
        a, b = d(real), d(fake.detach())
        (a.mean() - b.mean()).backward()
        od.step()
        og.zero_grad()
        d(fake).mean().backward()
        og.step()


@case("idle_weights")
def trl_like_reference():
    """The loss of DPO as trl computes it: the policy beside a frozen copy of it."""
    import copy
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(num_hidden_layers=8, hidden_size=1024, intermediate_size=2048, num_attention_heads=8, num_key_value_heads=8, vocab_size=4096)
    model = LlamaForCausalLM(config).cuda()
    reference = copy.deepcopy(model).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def log_probabilities(of, t):
        return of(t).logits[:, :-1].log_softmax(-1).gather(-1, t[:, 1:, None]).sum((1, 2))

    for _ in range(3):
        t = tokens(2, 32, 4096)
        with torch.no_grad():
            wanted = log_probabilities(reference, t)
        ours = log_probabilities(model, t) - wanted
        loss = -nn.functional.logsigmoid(0.1 * (ours[0] - ours[1]))
        if AFTER:
            reference.cpu()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if AFTER:
            reference.cuda()


@case("idle_weights")
def diffusers_average():
    from diffusers import UNet2DModel
    from diffusers.training_utils import EMAModel
    model = UNet2DModel(sample_size=32, block_out_channels=(128, 256, 256, 512)).cuda()
    average = EMAModel(model.parameters())
    average.to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(3):
        x = torch.randn(2, 3, 32, 32, device="cuda")
        loss = model(x, torch.randint(1000, (2,), device="cuda")).sample.square().mean()
        if AFTER:
            average.to("cpu")
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if AFTER:
            average.to("cuda")
        average.step(model.parameters())


@case("idle_gradients")
def accelerate_evaluates():
    """The gradients are set to None at the beginning of a step, and an evaluation comes before."""
    from accelerate import Accelerator
    from transformers import BertConfig, BertForSequenceClassification
    accelerator = Accelerator()
    model = BertForSequenceClassification(BertConfig(num_hidden_layers=12, hidden_size=768, num_attention_heads=12, vocab_size=8192))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    for _ in range(2):
        model.train()
        for _ in range(3):
            optimizer.zero_grad()
            t = tokens(2, 32, 8192)
            accelerator.backward(model(t, labels=torch.randint(2, (2,), device="cuda")).loss)
            optimizer.step()
        if AFTER:
            optimizer.zero_grad()
        model.eval()
        for _ in range(2):
            with torch.no_grad():
                print(model(tokens(64, 512, 8192)).logits.argmax(-1).shape)


@case("logits_in_float32")
def transformers_upcast():
    from transformers import Qwen2Config, Qwen2ForCausalLM
    config = Qwen2Config(num_hidden_layers=2, hidden_size=512, intermediate_size=1024, num_attention_heads=8, num_key_value_heads=8, vocab_size=32768)
    model = Qwen2ForCausalLM(config).cuda().to(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        t = tokens(4, 512, 32768)
        if AFTER:
            logits = model(t).logits
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), nn.functional.pad(t, (0, 1), value=-100)[:, 1:].flatten())
            del logits
        else:
            loss = model(t, labels=t).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del loss


@case("offload_activations")
def timm_convnext_on_the_host():
    import contextlib
    import timm
    model = timm.create_model("convnext_atto", num_classes=10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autograd.graph.save_on_cpu() if AFTER else contextlib.nullcontext():
            loss = model(torch.randn(32, 3, 224, 224, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()


@case("kept")
def transformers_hidden_states():
    """Features of a frozen encoder, one list for all batches."""
    from transformers import ViTConfig, ViTModel
    model = ViTModel(ViTConfig(num_hidden_layers=6, hidden_size=384, num_attention_heads=6, intermediate_size=1536)).cuda().eval()
    features = []
    for _ in range(10):
        with torch.no_grad():
            out = model(torch.randn(32, 3, 224, 224, device="cuda")).last_hidden_state
        features.append(out.cpu() if AFTER else out)
        del out


@case("late_del")
def transformers_outputs():
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=256, n_head=4, vocab_size=32768)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        t = tokens(8, 256, 32768)
        out = model(t, labels=t)
        loss = out.loss
        if AFTER:
            del out
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    run()
