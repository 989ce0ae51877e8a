# SPDX-License-Identifier: Apache-2.0
# needs: trl datasets transformers peft
"""TRL: training on preferences, with a reference model beside."""
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import DPOConfig, DPOTrainer

words = {"<pad>": 0, "<eos>": 1, "<unk>": 2} | {f"w{i}": i + 3 for i in range(3997)}
plain = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
tokens = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def text(a, n):
    return " ".join(f"w{(a * j) % 3997}" for j in range(1, n))


rows = Dataset.from_dict({"prompt": [text(i, 40) for i in range(32)], "chosen": [" " + text(i + 1, 60) for i in range(32)],
                          "rejected": [" " + text(i + 2, 50) for i in range(32)]})
config = Qwen2Config(vocab_size=4000, hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
                     num_key_value_heads=4, pad_token_id=0, eos_token_id=1)
settings = DPOConfig(output_dir="out", per_device_train_batch_size=4, max_steps=3, bf16=True, save_strategy="no", report_to=[],
                     disable_tqdm=True, gradient_checkpointing=False)
DPOTrainer(model=Qwen2ForCausalLM(config), ref_model=Qwen2ForCausalLM(config), args=settings, train_dataset=rows, processing_class=tokens).train()
