# SPDX-License-Identifier: Apache-2.0
# needs: sentence_transformers
"""sentence-transformers: a bi-encoder trained with its trainer on pairs of sentences, then used to encode."""
import random

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments, losses, models
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

random.seed(0)
torch.manual_seed(0)
words = ["[PAD]", "[UNK]", *(f"w{i}" for i in range(200))]
tokenizer = Tokenizer(WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained("bert")
BertModel(BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536)).save_pretrained("bert")


def sentences(n):
    return [" ".join(random.choices(words[2:], k=40)) for _ in range(n)]


model = SentenceTransformer(modules=[models.Transformer("bert", max_seq_length=64), models.Pooling(384)])
data = Dataset.from_dict({"anchor": sentences(64), "positive": sentences(64)})
args = SentenceTransformerTrainingArguments("out", num_train_epochs=1, per_device_train_batch_size=16, fp16=True, report_to=[],
                                            save_strategy="no", disable_tqdm=True)
SentenceTransformerTrainer(model, args, data, loss=losses.MultipleNegativesRankingLoss(model)).train()
print(model.encode(sentences(32), batch_size=8, show_progress_bar=False).shape)
