# SPDX-License-Identifier: Apache-2.0
# needs: ignite
"""Ignite: supervised trainer and evaluator, a mixed-precision trainer with accumulation."""
import torch
import torchvision
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Accuracy, Loss
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torchvision.models.mobilenet_v3_large(num_classes=10).to("cuda")
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.005)
criterion = nn.CrossEntropyLoss()
data = DataLoader(TensorDataset(torch.randn(64, 3, 128, 128), torch.randint(0, 10, (64,))), batch_size=16)
trainer = create_supervised_trainer(model, optimizer, criterion, "cuda", amp_mode="amp", scaler=True, gradient_accumulation_steps=2)
evaluator = create_supervised_evaluator(model, metrics={"accuracy": Accuracy(), "loss": Loss(criterion)}, device="cuda")


@trainer.on(Events.EPOCH_COMPLETED)
def validate(trainer):
    evaluator.run(data)
    print(evaluator.state.metrics)


trainer.run(data, max_epochs=2)
