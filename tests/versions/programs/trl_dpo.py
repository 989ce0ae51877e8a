# SPDX-License-Identifier: Apache-2.0
import torch, sys
from transformers import LlamaConfig, LlamaForCausalLM
from trl.trainer.dpo_trainer import DPOTrainer
torch.manual_seed(0)
cfg = LlamaConfig(vocab_size=64000, hidden_size=512, intermediate_size=1376, num_hidden_layers=4,
                  num_attention_heads=8, num_key_value_heads=8, max_position_embeddings=2048, use_cache=False)
model = LlamaForCausalLM(cfg).cuda().train()
# the trainer's own forward pass, without its constructor
t = DPOTrainer.__new__(DPOTrainer)
for k, v in dict(is_encoder_decoder=False, padding_value=0, label_pad_token_id=-100, max_length=512, truncation_mode="keep_end",
                 max_completion_length=None, loss_type="sigmoid", use_weighting=False, use_num_logits_to_keep=False,
                 use_logits_to_keep=False, padding_free=False, aux_loss_enabled=False, beta=0.1).items():
    setattr(t, k, v)
class A: rpo_alpha = None
t.args = A()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    b = {}
    for k in ("prompt", "chosen", "rejected"):
        b[k + "_input_ids"] = torch.randint(5, 64000, (4, 128 if k == "prompt" else 256), device="cuda")
        b[k + "_attention_mask"] = torch.ones_like(b[k + "_input_ids"])
    out = t.concatenated_forward(model, b)
    loss = -torch.nn.functional.logsigmoid(0.1 * (out["chosen_logps"] - out["rejected_logps"])).mean()
    del out
    loss.backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated(), "END", torch.cuda.memory_allocated())
