# SPDX-License-Identifier: Apache-2.0
# needs: bitsandbytes transformers peft
"""Adapters on frozen weights of four bits, and on weights of eight."""
import torch
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM

LlamaForCausalLM(LlamaConfig(vocab_size=8000, hidden_size=768, intermediate_size=2048, num_hidden_layers=4, num_attention_heads=12,
                             num_key_value_heads=4)).to(torch.bfloat16).save_pretrained("base")
four = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16, bnb_4bit_use_double_quant=True)
for how in (four, BitsAndBytesConfig(load_in_8bit=True)):
    model = LlamaForCausalLM.from_pretrained("base", quantization_config=how, device_map={"": 0}, dtype=torch.bfloat16)
    model = prepare_model_for_kbit_training(model, gradient_checkpointing_kwargs={"use_reentrant": False})
    model = get_peft_model(model, LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM"))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    model.train()
    for _ in range(3):
        ids = torch.randint(0, 8000, (4, 256), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    del model, optimizer, loss
