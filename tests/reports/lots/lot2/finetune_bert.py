# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning a classifier with the Trainer, with accuracy on a validation set."""
import os
import sys
import tempfile

os.environ.setdefault("WANDB_DISABLED", "true")
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

config = BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024, vocab_size=8000,
                    num_labels=3, output_hidden_states=sys.argv[1] != "fixed")


class Texts(Dataset):
    def __init__(self, count, length=256):
        rng = np.random.default_rng(count)
        self.ids, self.labels = rng.integers(0, 8000, (count, length)), rng.integers(0, 3, count)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": torch.tensor(self.ids[i]), "attention_mask": torch.ones(self.ids.shape[1], dtype=torch.long),
                "labels": torch.tensor(self.labels[i])}


def compute_metrics(evaluation):
    predictions = evaluation.predictions
    if isinstance(predictions, tuple):
        predictions = predictions[0]
    return {"accuracy": float((predictions.argmax(-1) == evaluation.label_ids).mean())}


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, per_device_train_batch_size=16, per_device_eval_batch_size=32, max_steps=4,
                                  save_strategy="no", report_to=[], disable_tqdm=True, logging_strategy="no")
    trainer = Trainer(BertForSequenceClassification(config), arguments, train_dataset=Texts(128), eval_dataset=Texts(480),
                      compute_metrics=compute_metrics)
    trainer.train()
    print(trainer.evaluate())
print(torch.cuda.max_memory_allocated() >> 20, "MiB")
