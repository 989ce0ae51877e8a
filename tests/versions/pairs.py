# SPDX-License-Identifier: Apache-2.0
"""Released changes of memory, and what their maintainers say of them: the program, the packages of both versions, where the
change is (function and file of the first finding), its reason (words of its sentence), and where the maintainers say so."""
from dataclasses import dataclass


@dataclass
class Pair:
    name: str
    program: str
    old: str  # packages of that version, with what they need of that time
    new: str
    where: str  # matches "function file" of the first finding
    reason: str  # matches its sentence
    words: str  # for people
    source: str


WEB = "requests==2.32.3 urllib3==2.2.3 certifi==2024.8.30 charset-normalizer==3.4.0"
HUB_23, HUB_30 = "huggingface-hub==0.23.4 " + WEB, "huggingface-hub==0.30.2 " + WEB
TRANSFORMERS = {  # with the packages that it was released with
    "4.35.2": "tokenizers==0.15.2 " + HUB_23, "4.36.2": "tokenizers==0.15.2 " + HUB_23, "4.38.0": "tokenizers==0.15.2 " + HUB_23,
    "4.39.3": "tokenizers==0.15.2 " + HUB_23, "4.40.2": "tokenizers==0.19.1 " + HUB_23, "4.41.2": "tokenizers==0.19.1 " + HUB_23,
    "4.44.2": "tokenizers==0.19.1 " + HUB_23, "4.45.2": "tokenizers==0.20.3 " + HUB_30, "4.48.3": "tokenizers==0.21.1 " + HUB_30,
    "4.49.0": "tokenizers==0.21.1 " + HUB_30,
}
DATASETS = ("datasets==3.2.0 pyarrow==18.1.0 pandas==2.2.3 dill==0.3.8 multiprocess==0.70.16 xxhash==3.5.0 aiohttp==3.11.11 multidict==6.1.0 "
            "yarl==1.18.3 frozenlist==1.5.0 aiosignal==1.3.2 attrs==24.3.0 propcache==0.2.1 aiohappyeyeballs==2.4.4 idna==3.10 "
            "python-dateutil==2.9.0.post0 pytz==2024.2 tzdata==2024.2 six==1.17.0 rich==13.9.4")
METRICS = " lightning-utilities==0.11.9"
OLDER = " importlib-metadata==8.5.0 zipp==3.21.0 "


def transformers(version):
    """Empty: that of .venv."""
    return f"transformers=={version} {TRANSFORMERS[version]}" if version else ""


def of_transformers(name, program, old, new, *rest):
    return Pair(name, program, transformers(old), transformers(new), *rest)


T = transformers("4.45.2")
SKLEARN = " scikit-learn==1.7.2 scipy==1.16.3 joblib==1.5.2 threadpoolctl==3.6.0 "
TRL = f" {DATASETS} accelerate==1.3.0 " + transformers("4.48.3")
PAIRS = [
    of_transformers("llama-mask", "llama_mask", "4.38.0", "4.39.3", r"LlamaModel\.(_update_causal_mask|__init__) modeling_llama\.py", "^(Gone|Less)",
                    "a mask buffer of the longest length squared and its copy are gone", "transformers PR 29753"),
    of_transformers("llama-loss", "llama_train", "4.45.2", "4.48.3", r"sdpa_attention_forward sdpa_attention\.py", r"^(New|More).*:62.*\+32",
                    "attention and loss were refactored: a copy more of attention's result", "transformers PR 33902, 35235"),
    of_transformers("llama-shift", "llama_train", "4.48.3", "4.49.0", r"ForCausalLMLoss loss_utils\.py", "^(Gone|Less)",
                    "no copy of shifted logits", "transformers PR 35646"),
    of_transformers("llama-repeat", "llama_train", "4.49.0", "", r"(sdpa_attention_forward|repeat_kv) sdpa_attention\.py", "^(Gone|Less)",
                    "repeated keys and two copies are gone", "transformers 4.49 to 5: sdpa_attention.py"),
    of_transformers("llama-sdpa", "llama_train", "4.35.2", "4.36.2", r"(LlamaAttention|LlamaSdpaAttention)\.forward modeling_llama\.py", "^(Gone|Less).*activations",
                    "attention by scaled_dot_product_attention: no scores are kept", "transformers PR 26572"),
    of_transformers("generate", "llama_generate", "4.44.2", "4.45.2", r"LlamaForCausalLM\.forward modeling_llama\.py", "^(Gone|Less)",
                    "logits of the last token only, not of the whole prompt", "transformers PR 31292"),
    of_transformers("vit-sdpa", "vit_train", "4.40.2", "4.41.2", r"ViT(Sdpa)?SelfAttention\.forward modeling_vit\.py", "^(Gone|Less).*activations",
                    "attention by scaled_dot_product_attention", "transformers PR 30555"),
    of_transformers("bert-sdpa", "bert_train", "4.40.2", "4.41.2", r"Bert(Sdpa)?SelfAttention\.forward modeling_bert\.py", "^(Gone|Less).*activations",
                    "attention by scaled_dot_product_attention", "transformers PR 28802"),
    of_transformers("gpt2-sdpa", "gpt2_train", "4.41.2", "4.44.2", r"GPT2(Sdpa)?Attention\.(_attn|forward) modeling_gpt2\.py", "^(Gone|Less).*activations",
                    "attention by scaled_dot_product_attention", "transformers PR 31172"),
    Pair("lora-precision", "peft_lora", "peft==0.11.1 " + T, "peft==0.12.0 " + T, r"Linear\.forward layer\.py|_cast_adapter_dtype tuners_utils\.py",
         "^The same parameters in another precision.*_cast_adapter_dtype", "the same adapters in full precision", "peft PR 1706"),
    Pair("dora-base", "peft_dora", "peft==0.13.2 " + T, "peft==0.14.0 " + T, r"DoraLinearLayer\.forward dora\.py", "^(Gone|Less).*activations",
         "the base layer's result is used again", "peft PR 2122"),
    Pair("dpo-log-softmax", "trl_dpo", "trl==0.14.0" + TRL, "trl==0.15.0" + TRL, r"DPOTrainer\.concatenated_forward dpo_trainer\.py",
         "^Gone: activations.*not at the peak", "log_softmax of all words is gone: lower in the forward pass", "trl PR 2799"),
    Pair("timm-vit", "timm_vit", "timm==0.6.13 " + HUB_30, "timm==0.9.16 " + HUB_30, r"Attention\.forward vision_transformer\.py", "^(Gone|Less).*activations",
         "fused attention", "timm 0.9.0, release notes"),
    Pair("perplexity", "perplexity", "torchmetrics==1.3.0" + METRICS, "torchmetrics==1.3.1" + METRICS, r"_perplexity_update perplexity\.py", "^(Gone|Less)",
         "no square of all probabilities by all targets", "torchmetrics PR 2346"),
    Pair("unet-attention", "unet2d", "diffusers==0.16.1" + OLDER + transformers("4.40.2"), "diffusers==0.18.2" + OLDER + transformers("4.40.2"),
         r"unet_2d_blocks\.py|attention_processor\.py", "^Blocks of .* have other remainders",
         "AttentionBlock became Attention: measured, and nothing but remainders differs", "diffusers 0.17.0, release notes"),
    Pair("segresnet", "segresnet_ds", "monai==1.2.0", "monai==1.3.0", r"SegRes(Block|NetDS)\.\w+ segresnet_ds\.py", "^(Gone|Less)",
         "results are released earlier", "monai PR 7066"),
    Pair("retrieval", "retrieval", "torchmetrics==1.8.2" + METRICS, "torchmetrics==1.9.0" + METRICS, r"_bincount data\.py",
         "^(Gone|Less)", "no count for each number that an index may have", "torchmetrics PR 3291"),
    Pair("checkpoints", "sbert_checkpoint", "sentence-transformers==3.0.0" + SKLEARN + T, "sentence-transformers==3.0.1" + SKLEARN + T,
         r"modeling_bert\.py", "^Activations are now recomputed in backward",
         "gradient checkpointing reaches the model inside", "sentence-transformers PR 2717"),
    Pair("triplets", "sbert_triplets", "sentence-transformers==6.1.0" + SKLEARN, "sentence-transformers==6.2.0" + SKLEARN,
         r"BatchSemiHardTripletLoss", "^(Gone|Less)", "mining of triplets without a cube of the batch", "sentence-transformers PR 4026"),
    Pair("modules-to-save", "peft_copies", "peft==0.14.0 " + T, "peft==0.15.0 " + T, r"ModulesToSaveWrapper\.update other\.py", "^(Gone|Less) parameters",
         "no needless copies of modules that another adapter trains", "peft PR 2220"),
    Pair("dora-cache", "peft_dora_cached", "peft==0.18.1", "peft==0.19.0", r"DoraLinearLayer\.(get_lora_weight|forward) dora\.py",
         "^(New|More)", "inference keeps what DoRA computed of its weights, if asked to", "peft PR 2661"),
    Pair("prodigy-state", "prodigy_beta0", "prodigyopt==1.1", "prodigyopt==1.1.1", r"Prodigy\.step prodigy\.py", "^Less optimizer state",
         "no average of gradients where beta1 is 0", "prodigy PR 32"),
]
