# SPDX-License-Identifier: Apache-2.0
# A training of sentence embeddings that asks for gradient checkpointing as a trainer does.
import sys
import types
import torch
from sentence_transformers import SentenceTransformer, models
from transformers import BertConfig, BertModel
torch.manual_seed(0)


class Encoder(models.Transformer):
    """Of a configuration, not of a file; its inputs are token ids already."""
    def __init__(self, config):
        torch.nn.Module.__init__(self)
        self.config_keys, self.do_lower_case, self.max_seq_length = [], False, 128
        self.tokenizer = types.SimpleNamespace()
        self.auto_model = BertModel(config, add_pooling_layer=False)


cfg = BertConfig(vocab_size=8000, hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048)
model = SentenceTransformer(modules=[Encoder(cfg), models.Pooling(512)], device="cuda")
model.train()
if hasattr(model, "gradient_checkpointing_enable"):
    model.gradient_checkpointing_enable({"use_reentrant": False})
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    ids = torch.randint(5, 8000, (128, 128), device="cuda")
    a, b = (model({"input_ids": x, "attention_mask": torch.ones_like(x)})["sentence_embedding"] for x in ids.chunk(2))
    torch.nn.functional.cross_entropy(a @ b.T, torch.arange(64, device="cuda")).backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated())
