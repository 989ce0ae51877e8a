# SPDX-License-Identifier: Apache-2.0
# needs: skorch
"""skorch: a classifier with scikit-learn's interface."""
import numpy as np
import torch
from skorch import NeuralNetClassifier
from torch import nn

torch.manual_seed(0)
np.random.seed(0)


class Net(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(256, width), nn.Linear(width, width), nn.Linear(width, 5)
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        x = torch.relu(self.a(x))
        x = self.drop(torch.relu(self.b(x)))
        return torch.softmax(self.c(x), dim=-1)


x, y = np.random.randn(2048, 256).astype("float32"), np.random.randint(0, 5, 2048).astype("int64")
net = NeuralNetClassifier(Net, max_epochs=2, lr=0.01, batch_size=512, optimizer=torch.optim.AdamW, device="cuda", verbose=0)
net.fit(x, y)
print(net.predict_proba(x).shape)
