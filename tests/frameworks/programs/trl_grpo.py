# SPDX-License-Identifier: Apache-2.0
# needs: trl datasets transformers peft
"""TRL: text from the model, rewards for a group of answers, a step on them."""
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

words = {"<pad>": 0, "<eos>": 1, "<unk>": 2} | {f"w{i}": i + 3 for i in range(3997)}
plain = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
tokens = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left")
rows = Dataset.from_dict({"prompt": [" ".join(f"w{(i * j) % 3997}" for j in range(1, 40)) for i in range(16)]})
model = Qwen2ForCausalLM(Qwen2Config(vocab_size=4000, hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
                                     num_key_value_heads=4, pad_token_id=0, eos_token_id=1))
settings = GRPOConfig(output_dir="out", per_device_train_batch_size=8, num_generations=4, max_completion_length=16, max_steps=3, bf16=True,
                      save_strategy="no", report_to=[], disable_tqdm=True, beta=0.04, generation_kwargs={"min_new_tokens": 16})
trainer = GRPOTrainer(model=model, reward_funcs=lambda completions, **more: [float(len(c)) for c in completions], args=settings,
                      train_dataset=rows, processing_class=tokens, peft_config=LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
trainer.train()
