# SPDX-License-Identifier: Apache-2.0
# needs: trl datasets transformers peft
"""TRL: supervised training on text, rows packed together."""
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import SFTConfig, SFTTrainer

words = {"<pad>": 0, "<eos>": 1, "<unk>": 2} | {f"w{i}": i + 3 for i in range(3997)}
plain = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
tokens = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
rows = Dataset.from_dict({"text": [" ".join(f"w{(i * j) % 3997}" for j in range(1, 100 + i)) for i in range(64)]})
model = Qwen2ForCausalLM(Qwen2Config(vocab_size=4000, hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
                                     num_key_value_heads=4, pad_token_id=0, eos_token_id=1))
settings = SFTConfig(output_dir="out", per_device_train_batch_size=4, max_steps=4, max_length=256, packing=False, bf16=True, save_strategy="no",
                     report_to=[], disable_tqdm=True, gradient_checkpointing=False)
SFTTrainer(model=model, args=settings, train_dataset=rows, processing_class=tokens).train()
