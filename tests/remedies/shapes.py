# SPDX-License-Identifier: Apache-2.0
"""shapes.py NAME: trainings of models in the shapes that people train, by their configurations, with random weights that are made on the
device. A few steps each, as a person writes them; nothing of ours."""
import contextlib
import sys

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

STEPS = 6
LLAMA_8B = dict(vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8)
LLAMA_1B = dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, tie_word_embeddings=True)
QWEN_7B = dict(vocab_size=152064, hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28, num_key_value_heads=4)
QWEN_HALF_B = dict(vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True)


class Tokens(Dataset):
    def __init__(self, rows, length, vocabulary):
        self.rows, self.length, self.vocabulary = rows, length, vocabulary

    def __len__(self):
        return self.rows * STEPS

    def __getitem__(self, i):
        ids = torch.randint(self.vocabulary, (self.length,))
        return dict(input_ids=ids, labels=ids)


class Made(Dataset):
    """Rows of the given shapes; a function makes the classes or values behind them."""
    def __init__(self, rows, shape, labels):
        self.rows, self.shape, self.labels = rows, shape, labels

    def __len__(self):
        return self.rows * STEPS

    def __getitem__(self, i):
        return torch.zeros(self.shape), self.labels()


def language_model(kind, config, dtype):
    import transformers
    cls = getattr(transformers, kind + "Config")
    with torch.device("cuda"):
        return transformers.AutoModelForCausalLM.from_config(cls(max_position_embeddings=8192, **config), dtype=dtype)


def adapted(model, **options):
    import peft
    return peft.get_peft_model(model, peft.LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM", **options))


def train(model, loader, loss_of, optimizer=torch.optim.AdamW, autocast=False):
    optimizer = optimizer([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    for batch in loader:
        with torch.autocast("cuda", torch.bfloat16) if autocast else contextlib.nullcontext():
            loss = loss_of(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def causal(kind, config, rows, length, dtype=torch.float32, lora=False, autocast=False):
    model = language_model(kind, config, dtype)
    model = adapted(model) if lora else model
    loader = DataLoader(Tokens(rows, length, config["vocab_size"]), batch_size=rows)
    train(model, loader, lambda batch: model(**{k: v.cuda() for k, v in batch.items()}).loss, autocast=autocast)


def llama_8b_lora():
    causal("Llama", LLAMA_8B, 2, 1024, lora=True)


def llama_8b_lora_bf16():
    causal("Llama", LLAMA_8B, 4, 1024, torch.bfloat16, lora=True)


def llama_8b_full():
    causal("Llama", LLAMA_8B, 2, 1024, torch.bfloat16)


def llama_1b_full():
    causal("Llama", LLAMA_1B, 4, 1024, autocast=True)


def llama_1b_lora():
    causal("Llama", LLAMA_1B, 8, 1024, lora=True)


def qwen_7b_lora():
    causal("Qwen2", QWEN_7B, 4, 1024, torch.bfloat16, lora=True)


def qwen_7b_full():
    causal("Qwen2", QWEN_7B, 1, 2048, torch.bfloat16)


def qwen_half_b_full():
    causal("Qwen2", QWEN_HALF_B, 4, 1024)


def unet():
    """A latent diffusion model's, at 64 x 64 latents."""
    from diffusers import DDPMScheduler, UNet2DConditionModel
    with torch.device("cuda"):
        model = UNet2DConditionModel(sample_size=64, cross_attention_dim=768)
    noise = DDPMScheduler(num_train_timesteps=1000)
    loader = DataLoader(Made(8, (4, 64, 64), lambda: torch.zeros(77, 768)), batch_size=8)

    def loss_of(batch):
        latents, text = (t.cuda() for t in batch)
        added, times = torch.randn_like(latents), torch.randint(1000, (len(latents),)).cuda()
        return F.mse_loss(model(noise.add_noise(latents, added, times), times, text).sample, added)

    train(model, loader, loss_of)


def unet_autocast():
    from diffusers import UNet2DConditionModel
    with torch.device("cuda"):
        model = UNet2DConditionModel(sample_size=64, cross_attention_dim=768)
    loader = DataLoader(Made(8, (4, 64, 64), lambda: torch.zeros(77, 768)), batch_size=8)
    train(model, loader, lambda batch: model(batch[0].cuda(), torch.zeros(len(batch[0])).cuda(), batch[1].cuda()).sample.float().square().mean(), autocast=True)


def vit_large():
    import transformers
    with torch.device("cuda"):
        model = transformers.ViTForImageClassification(transformers.ViTConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, num_labels=1000))
    loader = DataLoader(Made(32, (3, 224, 224), lambda: torch.randint(1000, ())), batch_size=32)
    train(model, loader, lambda batch: model(pixel_values=batch[0].cuda(), labels=batch[1].cuda()).loss)


def vit_frozen():
    """A head on features of a model that is not trained."""
    import transformers
    with torch.device("cuda"):
        model = transformers.ViTForImageClassification(transformers.ViTConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, num_labels=1000))
    model.vit.requires_grad_(False)
    loader = DataLoader(Made(32, (3, 224, 224), lambda: torch.randint(1000, ())), batch_size=32)
    train(model, loader, lambda batch: model(pixel_values=batch[0].cuda(), labels=batch[1].cuda()).loss)


def whisper_small():
    import transformers
    config = transformers.WhisperConfig(d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12, decoder_attention_heads=12,
                                        encoder_ffn_dim=3072, decoder_ffn_dim=3072)
    with torch.device("cuda"):
        model = transformers.WhisperForConditionalGeneration(config)
    loader = DataLoader(Made(8, (80, 3000), lambda: torch.randint(50000, (200,))), batch_size=8)
    train(model, loader, lambda batch: model(input_features=batch[0].cuda(), labels=batch[1].cuda()).loss)


def resnet():
    import timm
    with torch.device("cuda"):
        model = timm.create_model("resnet50")
    loader = DataLoader(Made(64, (3, 224, 224), lambda: torch.randint(1000, ())), batch_size=64)
    train(model, loader, lambda batch: F.cross_entropy(model(batch[0].cuda()), batch[1].cuda()), optimizer=lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9))


def teacher():
    """Distillation: logits of a larger model without a graph."""
    model = language_model("Qwen2", QWEN_HALF_B, torch.bfloat16)
    large = language_model("Qwen2", {**QWEN_HALF_B, "hidden_size": 1792, "intermediate_size": 9728, "num_attention_heads": 14}, torch.float32).requires_grad_(False)
    loader = DataLoader(Tokens(2, 1024, QWEN_HALF_B["vocab_size"]), batch_size=2)

    def loss_of(batch):
        ids = batch["input_ids"].cuda()
        with torch.no_grad():
            wanted = large(ids).logits.log_softmax(-1)
        return F.kl_div(model(ids).logits.float().log_softmax(-1).flatten(0, 1), wanted.flatten(0, 1), log_target=True, reduction="batchmean")

    train(model, loader, loss_of)


def dpo():
    """Preferences against a copy of the model that is not trained."""
    model = language_model("Qwen2", QWEN_HALF_B, torch.float32)
    reference = language_model("Qwen2", QWEN_HALF_B, torch.float32).requires_grad_(False)
    loader = DataLoader(Tokens(4, 512, QWEN_HALF_B["vocab_size"]), batch_size=4)

    def words(of, ids):
        return of(ids).logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None]).sum((1, 2))

    def loss_of(batch):
        ids = batch["input_ids"].cuda()
        with torch.no_grad():
            kept = words(reference, ids)
        return -F.logsigmoid(words(model, ids) - kept).mean()

    train(model, loader, loss_of)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
