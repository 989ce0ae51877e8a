# SPDX-License-Identifier: Apache-2.0
"""Published figures that were chosen before any of them was run: `run.py --first-try` runs each once and keeps what comes out. New rows go
to the end, in a commit of their own; a row that was run is not changed any more, and none is left out because it is off."""
from dataclasses import dataclass, replace

from rows import MIB, Row, Source

CONVOLUTIONS, COMPILED, RANKS = "convolutions", "compiled", "ranks"


@dataclass(frozen=True)
class Chosen(Row):
    """`of` says what a program is made of besides matrix products; programs with one `name` before the colon are counted once."""
    of: tuple = ()
    libraries: tuple = ()  # (repository, commit) of sources of that time, found before the environment's packages

    @property
    def kind(self):
        return "reserved" if "reserved" in self.source.measure else "allocated"


TIMM = (("huggingface/pytorch-image-models", "7096b52a613eefb4f6d8107366611c8983478b19"),)  # 0.4.12
PYG = (("pyg-team/pytorch_geometric", "7ca40d635c4757f53ec2a1260e4a9e6505f8ad49"),)  # 2.6.1
YACS = (("rbgirshick/yacs", "32d5e4ac300eca6cd3b839097dde39c4017a1070"),)


def vit():
    log = Source("pytorch-memory-optim logs.md", "2023-07-01", "rasbt/pytorch-memory-optim", "f6eddcd28c40770a097ffd9f18797a043457a2d0", "A100",
                 "2.1 nightly", "a100-40g", "frameworks", "reserved")
    for script, what, figure in (("01_pytorch-vit", "float32, batch 64", 26.79), ("01-2_pytorch-fabric", "the same with Fabric", 26.84),
                                 ("02_mixed-precision", "float16 autocast", 18.21), ("03_bfloat16", "bfloat16", 13.82), ("04_lower-batchsize", "batch 16", 5.69),
                                 ("05_gradient-accum", "4 batches of 4", 3.91), ("06_sgd-with-scheduler", "the same, SGD", 2.02)):
        yield Chosen("vit-" + script.partition("_")[0], log, "ViT-L/16 fine-tuning (torchvision): " + what, figure, "GB",
                     ("{here}/memory_optim.py", "{source}/" + script + ".py"), printed=r"Memory used: ([\d.]+) GB", of=(CONVOLUTIONS,))
    for script, what, figure in (("07_01_init-module", "made on the host", 1.24), ("07_03_init-module", "made on the card", 0.65)):
        yield Chosen("vit-" + script[:5].replace("_", "-"), log, "ViT-L/16 in Fabric: " + what, figure, "GB", ("{here}/memory_optim.py", "{source}/" + script + ".py"),
                     printed=r"GPU Memory used: ([\d.]+) GB")


SCRATCH = "rasbt/LLMs-from-scratch"


def scratch():
    speed = Source("LLMs-from-scratch ch05/10_llm-training-speed", "2025-04-05", SCRATCH, "28c65cdfbc3338e2e040016eea4b7fdf556e4d57", "A100", "2.6.0", "a100-80g", "cards26",
                   "reserved")
    program = "{source}/ch05/10_llm-training-speed/"
    for name, script, what, figure, pattern, of, ranks in (
            ("speed-orig", "00_orig.py", "as in the book", 26.2617, "Reserved", (), ""),
            ("speed-orig-allocated", "00_orig.py", "the same, at the end of an epoch", 2.5069, "Allocated", (), ""),
            ("speed-best", "01_opt_single_gpu.py", "all changes, compiled", 22.5078, "Reserved", (COMPILED,), ""),
            ("speed-ddp", "02_opt_multi_gpu_ddp.py", "all changes, compiled, DDP over 4", 22.7969, "Reserved", (COMPILED, RANKS), "4:0")):
        source = speed if pattern == "Reserved" else replace(speed, measure="allocated at the end")
        yield Chosen(name, source, "GPT-2 124M pretraining from scratch: " + what, figure, "GiB", ("{here}/scratch.py", program + script),
                     printed=pattern + r" memory: ([\d.]+) GB", of=of, ranks=ranks)
    cached = Source("LLMs-from-scratch ch04", "2025-10-12", SCRATCH, speed.commit, "not said", "2.8", "a100-80g", "cards26", "allocated")
    long = ("--max_new_tokens", "32768", "--n_heads", "24", "--n_layers", "12", "--emb_dim", "768")
    for name, script, figure, more in (("kv-mha", "04_gqa/gpt_with_kv_mha.py", 1.54, ()), ("kv-gqa", "04_gqa/gpt_with_kv_gqa.py", 0.63, ("--n_kv_groups", "4")),
                                       ("kv-mla", "05_mla/gpt_with_kv_mla.py", 0.68, ("--latent_dim", "192")),
                                       ("kv-swa", "06_swa/gpt_with_kv_swa.py", 0.63, ("--sliding_window_size", "1024", "--sliding_window_stride", "5"))):
        yield Chosen(name, cached, f"GPT with a KV cache, 32,768 tokens: {name[3:]}", figure, "GiB", ("{here}/scratch.py", "{source}/ch04/" + script, *long, *more),
                     printed=r"Max memory allocated: ([\d.]+) GB")
    wide = ("--max_new_tokens", "1024", "--n_heads", "16", "--n_layers", "12", "--emb_dim", "4096")
    for name, figure, more in (("ffn", 11.47, ("--hidden_dim", "32768")), ("moe", 11.48, ("--hidden_dim", "1024", "--num_experts", "32", "--num_experts_per_tok", "2"))):
        yield Chosen("kv-" + name, cached, f"GPT with experts, 1,024 tokens: {name}", figure, "GiB", ("{here}/scratch.py", f"{{source}}/ch04/07_moe/gpt_with_kv_{name}.py", *wide, *more),
                     printed=r"Max memory allocated: ([\d.]+) GB")
    for model, chapter, date, figure in (("llama3", "07_gpt_to_llama", "2025-06-23", 2.91), ("qwen3", "11_qwen3", "2025-06-23", 1.49)):
        yield Chosen(f"scratch-{model}", replace(cached, title=f"LLMs-from-scratch ch05/{chapter}", date=date, card="A100"), f"{model} from scratch, generation: 150 tokens", figure, "GiB",
                     ("{here}/scratch_generate.py", model), printed=r"Max memory allocated: ([\d.]+) GB")


def nanochat():
    source = Source("nanochat report of a run", "2025-10-15", "karpathy/nanochat", "dd6ff9a1cc23b38ce69ddc119fb220f9ee96cedd", "8 H100 80GB", "2.8.0", "h100-80g", "frameworks",
                    "allocated")
    yield Chosen("nanochat-d20", source, "nanochat base_train: depth 20, batch 32, 8 ranks", 75424.17, "MiB", ("{here}/nanochat.py",), printed=r"Peak memory usage: ([\d.]+)MiB",
                 ranks="8:0", of=(COMPILED, RANKS))


def low_bit():
    source = Source("torchao low_bit_optim/README.md", "2024-09-05", "pytorch/ao", "1e7f132e387a0e301176d5afa1830329c126b747", "RTX 4070 Ti SUPER", "2.4", "rtx4080-16g", "cards26",
                    "allocated")
    for optimizer, figure in (("AdamW", 12.23), ("AdamW8bitBnb", 8.32), ("AdamW8bitAo", 8.33), ("AdamWFp8Ao", 8.33), ("AdamW4bitAo", 7.72)):
        yield Chosen("lowbit-" + optimizer.lower(), source, f"ViT-H/14 fine-tuning (timm, torchao's optimizers), compiled: {optimizer}", figure, "GB",
                     ("{here}/low_bit.py", "{source}/benchmarks/benchmark_low_bit_adam.py", optimizer), printed=r"Max memory used: ([\d.]+) GB", of=(CONVOLUTIONS, COMPILED))
    source = Source("torchao quantized_training/README.md", "2024-09-09", "pytorch/ao", "9acc9a4de61879d3dd6129611e722ef827d0e9a6", "RTX 4070 Ti SUPER", "2.5 nightly", "rtx4080-16g",
                    "cards26", "allocated")
    for name, figure, more, of in (("bf16", 11.07, (), ()), ("bf16-compiled", 10.25, ("--compile",), (COMPILED,)), ("int8", 10.12, ("--quantize", "int8_weight_only"), ()),
                                   ("int8-compiled", 9.84, ("--quantize", "int8_weight_only", "--compile"), (COMPILED,))):
        yield Chosen("quantized-" + name, source, f"Llama 1B pretraining, batch 4 x 2,048 (torchao): {name}", figure, "GB",
                     ("{here}/quantized_training.py", "{source}/benchmarks/quantized_training/pretrain_llama2.py", *more), printed=r"max_memory_allocated: ([\d.]+) GB", of=of)


def megatron():
    source = Source("Megatron-LM gpt3_mcore_tp2_pp2_uninstall_te, golden values", "2025-10-21", "NVIDIA/Megatron-LM", "adc69dba2dec6c9014d51b6cad3edf1020731786", "8 A100", "not said", "a100-80g", "cards26",
                    "allocated")
    for name, what, figure, pattern in (("megatron-peak", "peak", 2086473728 / MIB, "peak"), ("megatron-end", "at the end of an update", 560548864 / MIB, "at the end")):
        yield Chosen(name, source, f"Megatron-LM GPT, tensors over 2, pipeline over 2, data over 2: {what}", round(figure, 3), "MiB", ("{here}/megatron.py",),
                     printed=pattern + r": ([\d.]+) MiB", ranks="8:7", of=(RANKS,))


def litgpt():
    plain = Source("litgpt tutorials/quantize.md", "2023-10-05", "Lightning-AI/litgpt", "982abcbc98bef6ee7bb80acab16f83bf1b5de45e", "A100 40 GB", "2.1 nightly", "a100-40g", "frameworks",
                   "allocated")
    for name, figure, precision in (("float32", 28.95, "32-true"), ("bfloat16", 14.50, "bf16-true")):
        yield Chosen("falcon-" + name, plain, f"lit-gpt generate, falcon-7b: {name}", figure, "GB", ("{here}/litgpt_generate.py", "base", "falcon-7b", precision),
                     printed=r"Memory used: ([\d.]+) GB")
    many = Source("litgpt tutorials/inference.md", "2024-01-10", "Lightning-AI/litgpt", "51d5328751615529334a4cbaddc4ec5192ce4b39", "A100 40 GB", "2.2 nightly", "a100-40g", "frameworks",
                  "allocated, most of all cards")
    yield Chosen("llama70-sequentially", many, "lit-gpt generate over cards, Llama-2-70B: layers over 4", 35.64, "GB",
                 ("{here}/litgpt_generate.py", "sequentially", "Llama-2-70b-chat-hf", "bf16-true"), printed=r"Memory used: ([\d.]+) GB", count=4, of=(RANKS,))
    for ranks, figure in ((4, 35.46), (8, 18.19)):
        yield Chosen(f"llama70-tp{ranks}", many, f"lit-gpt generate over cards, Llama-2-70B: tensors over {ranks}", figure, "GB",
                     ("{here}/litgpt_generate.py", "tp", "Llama-2-70b-chat-hf", "bf16-true"), printed=r"Memory used: ([\d.]+) GB", ranks=f"{ranks}:0", of=(RANKS,))


def cogvideo():
    source = Source("cogvideox-factory README.md", "2024-10-04", "a-r-r-o-w/cogvideox-factory", "d81209bf497f55132abd14deb9c109d4d13087ca", "A100 80 GB", "2.4 or 2.5", "a100-80g",
                    "cards26", "allocated")
    for name, what, figure, rank, batch, checkpointing, pattern in (
            ("cog-start", "rank 16, before training", 12.945, 16, 1, False, "before training"), ("cog-16", "rank 16, batch 1", 43.764, 16, 1, False, "before validation"),
            ("cog-256", "rank 256, batch 1", 45.826, 256, 1, False, "before validation"),
            ("cog-16-4", "rank 16, batch 4, checkpointing", 21.803, 16, 4, True, "before validation")):
        yield Chosen(name, source, f"CogVideoX-2b LoRA: {what}", figure, "GiB", ("{here}/cogvideo_lora.py", str(rank), str(batch), *(["--gradient_checkpointing"] if checkpointing else [])),
                     printed=pattern + r": ([\d.]+) GiB", of=(CONVOLUTIONS,) if name == "cog-start" else ())
    source = Source("diffusers-torchao README.md", "2024-09", "sayakpaul/diffusers-torchao", "9b9f2383dccb8eb73a4c6a8ffe736dd9610c26d2", "H100", "2.5 nightly", "h100-80g", "cards26",
                    "allocated")
    for name, figure, more in (("cog5-bf16", 31.746, ()), ("cog5-fused", 33.96, ("--fuse_qkv",))):
        yield Chosen(name, source, f"CogVideoX-5b generation: bfloat16{', QKV fused' if more else ''}", figure, "GiB", ("{here}/cogvideo.py", "{source}/inference/benchmark_video.py", *more),
                     printed=r"inference_memory: ([\d.]+)", of=(CONVOLUTIONS,))


def optimum():
    source = Source("optimum-benchmark, dataset of results cuda", "2024-12", "huggingface/optimum-benchmark", "2fd6e9f6e015f3fd101e3a1f75d36cab9d087ccf", "A10G", "2.4.1", "a10-24g", "cards26", "allocated")
    for model, what, of, figures in (("timm/resnet50.a1_in1k", "ResNet-50 (timm), batch 2", (CONVOLUTIONS,), (("load", "reserved", 123.731968), ("load", "allocated", 102.475264),
                                                                                                      ("forward", "reserved", 148.897792))),
                                     ("google-bert/bert-base-uncased", "BERT-base, batch 2", (), (("load", "reserved", 589.299712), ("forward", "reserved", 591.396864),
                                                                                                   ("forward", "allocated", 449.269248)))):
        for step, kind, figure in figures:
            yield Chosen(f"optimum-{'bert' if 'bert' in model else 'resnet'}-{step}-{kind}", replace(source, measure=kind), f"optimum-benchmark, {what}: {step}", figure, "MB",
                         ("{here}/optimum.py", model), printed=rf"{step} {kind}: ([\d.]+) MB", of=of)


def masked():
    mae = Source("log of a fork of facebookresearch/mae", "2024-04-17", "facebookresearch/mae", "efb2a8062c206524e35e47d04501ed4f544c0ae8", "L40S", "2.2", "l40s-48g", "cards26", "allocated")
    for batch, figure in ((16, 593), (32, 687)):
        yield Chosen(f"mae-{batch}", mae, f"MAE, evaluation of ViT-B: batch {batch}", figure, "MiB", ("{here}/masked.py", "mae", str(batch)), printed=r"max mem: (\d+)",
                     of=(CONVOLUTIONS,), libraries=TIMM)
    deit = Source("log of a fork of facebookresearch/deit", "2023", "facebookresearch/deit", "7e160fe43f0252d17191b71cbb5826254114ea5b", "not said", "1.8 or later", "v100-32g", "cards26",
                  "allocated")
    yield Chosen("deit-768", deit, "DeiT, evaluation of DeiT-S: batch 768, autocast", 2754, "MiB", ("{here}/masked.py", "deit", "768"), printed=r"max mem: (\d+)", of=(CONVOLUTIONS,),
                 libraries=TIMM)
    audio = Source("AudioMAE README.md", "2022-07", "facebookresearch/AudioMAE", "bd60e29651285f80d32a6405082835ad26e6f19f", "V100 32 GB", "1.8", "v100-32g", "cards26", "allocated")
    for name, what, figure in (("first", "evaluation, batch 16, first batch", 1035), ("last", "the same, after 1,197 batches", 1090), ("train", "fine-tuning over 64, batch 4", 2606)):
        yield Chosen("audio-" + name, audio, "AudioMAE, AudioSet: " + what, figure, "MiB", ("{here}/masked.py", "audio", name), printed=r"max mem: (\d+)",
                     of=(CONVOLUTIONS, RANKS) if name == "train" else (CONVOLUTIONS,), ranks="64:0" if name == "train" else "", libraries=TIMM)
    swin = Source("Swin-Transformer issue 183", "2022-03-14", "microsoft/Swin-Transformer", "f82860bfb5225915aca09c3227159ee9e1df874d", "8, not said", "1.8 or later", "a100-40g", "cards26",
                  "allocated")
    yield Chosen("swin-t", swin, "Swin-T, ImageNet training: batch 128, 8 ranks", 14764, "MiB", ("{here}/masked.py", "swin", "128"), printed=r"mem (\d+)MB", ranks="8:0",
                 of=(CONVOLUTIONS, RANKS), libraries=TIMM + YACS)


def detection():
    source = Source("MLPerf single stage detector, a run on Azure", "2025-06", "mlcommons/training", "aa344c7fb900e82ed19fb94aebfed50c63ab2204", "H100 NVL 94 GB", "2", "h100-96g=94GiB", "cards26",
                    "allocated")
    for name, what, figure in (("first", "first update", 51676), ("later", "after 60 updates", 52125)):
        yield Chosen("retinanet-" + name, source, f"RetinaNet ResNeXt-50, batch 32 (torchvision references, MLPerf): {what}", figure, "MiB", ("{here}/retinanet.py", name),
                     printed=r"max mem: (\d+)", of=(CONVOLUTIONS,))


def graphs():
    source = Source("Training Graph Neural Networks with 1000 Layers, table 5", "2021-06-14", "lightaime/deep_gcns_torch", "4f6681eee2290e217bda941b5536452a7c09decb", "V100 32 GB", "1.7",
                    "v100-32g", "cards26", "allocated")
    for name, layers, width, dropout, figure in (("deep", "1001", "80", "0.1", 2.86), ("wide", "448", "224", "0.2", 7.91)):
        yield Chosen("revgnn-" + name, source, f"RevGNN, ogbn-proteins: {layers} layers of {width}", figure, "GiB", ("{here}/revgnn.py", layers, width, dropout),
                     printed=r"peak: ([\d.]+) GiB", libraries=PYG)


def bert():
    source = Source("transformers' SDPA inference script, BERT (pull request 28802)", "2024-02-15", "", "", "A100", "2.1 and 2.2.0", "a100-80g", "cards26", "allocated")
    for how, batch, length, figure in (("eager", 1, 128, 282.661), ("sdpa", 1, 128, 282.924), ("eager", 4, 256, 443.209)):
        yield Chosen(f"bertinf-{how}-{batch}-{length}", source, f"transformers' SDPA inference script: bert-base float16, {how}, {batch} x {length}", figure, "MB",
                     ("{here}/bert_inference.py", how, str(batch), str(length)), printed=r"memory: ([\d.]+) MB")


CHOSEN = {row.name: row for row in [*vit(), *scratch(), *nanochat(), *low_bit(), *megatron(), *litgpt(), *cogvideo(), *optimum(), *masked(), *detection(), *graphs(), *bert()]}

WHY = {  # of a difference above 1 %, and the experiment that shows it
    "batch 1": "cuDNN's workspaces on an A100 were not measured: `fit` says a range there",
    "the same, sdpa": "7 to 22 MB of each figure are rests of blocks that the allocator did not split. Another order of the same runs changes 2.5 MB of it; the rest not found",
    "vit-02": "PyTorch. The program under PyTorch 2.1, as published, comes to 18.21 GB here: exact",
    "vit-03": "PyTorch. Under 2.1 it comes to 13.82 GB: exact",
    "vit-04": "PyTorch. Under 2.1 it comes to 5.58 GB (-1.9 %); the rest not found",
    "vit-05": "PyTorch. Under 2.1 it comes to 3.30 GB, and to 3.93 GB with the list of Adam's denominators as a list of its own, as nightly builds of that month made it",
    "vit-06": "PyTorch. Under 2.1 it comes to 2.02 GB: exact",
    "audio-first": "PyTorch 1.7 multiplied by a view of each weight, of which autocast keeps no copy in float16. With `linear` written so it comes to 1,070 MiB "
                   "(+3.4 %); the rest not found",
    "audio-last": "PyTorch, as in the first batch. Since then it grows by 58 MiB here, by 55 MiB as published",
    "audio-train": "PyTorch 1.8 set gradients to zero in place. With `zero_grad(set_to_none=False)` it comes to 2,615 MiB (+0.4 %)",
    "deit-768": "the fork is not public. Without the averaged copy of the model and DDP's buckets, which an evaluation does not need, it comes to 2,817 MiB (+2.3 %); the rest not found",
    "bertinf-eager-1-128": "the script's text is not public as a file: written after its description, with another pass than the published one",
    "bertinf-sdpa-1-128": "the same",
    "bertinf-eager-4-256": "the same",
    "swin-t": "not found. With `--disable_amp` it comes to 13,644 MiB (-7.6 %): the log may be of a run in float32. It names a copy of the program that is not public",
    "revgnn-wide": "not found. The graph is made up, with as many edges in each part as the real one has on average",
    "quantized-int8-compiled": "not found. Neither int8 alone nor compiled bfloat16 is off by more than 0.6 %",
    "cog5-bf16": "diffusers. Since 2024-09-28 its decoder returns the caches of its convolutions, so that old and new ones are alive at once. With diffusers of 2024-09-19 it comes to 31.670 GiB "
                 "(-0.24 %)",
    "cog5-fused": "the same. With diffusers of 2024-09-19 it comes to 33.886 GiB (-0.22 %)",
    "cog-start": "the published figure is reserved memory: 173 of the 180 figures of its tables are multiples of 2 MiB. Reserved here: 12.932 GiB (-0.10 %)",
    "cog-16": "reserved memory, as above. Reserved here: 43.586 GiB (-0.41 %)",
    "cog-256": "reserved memory, as above. Reserved here: 45.953 GiB (+0.28 %)",
    "cog-16-4": "reserved memory, as above. Reserved here: 21.486 GiB (-1.45 %); the rest not found",
}
