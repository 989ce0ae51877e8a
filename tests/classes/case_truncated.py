# SPDX-License-Identifier: Apache-2.0
"""Words by a recurrent network, as in a first course: the corpus lies on the device and is cut into pieces, the hidden state
is detached and carried over, weights are tied, the step is one line of arithmetic on p.data, then an evaluation."""
import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

WORDS, WIDTH, COLUMNS, BPTT = 12000, 650, 32, 35
device = torch.device("cuda")


class RNNModel(nn.Module):
    def __init__(self):
        super(RNNModel, self).__init__()
        self.drop = nn.Dropout(0.5)
        self.encoder = nn.Embedding(WORDS, WIDTH)
        self.rnn = nn.LSTM(WIDTH, WIDTH, 2, dropout=0.5)
        self.decoder = nn.Linear(WIDTH, WORDS)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, WORDS)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(2, bsz, WIDTH), weight.new_zeros(2, bsz, WIDTH)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous().to(device)


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


train_data, val_data = batchify(torch.randint(0, WORDS, (400000,)), COLUMNS), batchify(torch.randint(0, WORDS, (40000,)), 10)
model = RNNModel().to(device)
criterion = nn.NLLLoss()
runner.declare(model)
truth.holds_sizes("parameters", "the flat weights of the network", lambda: [sum(w.nbytes for w in model.rnn._flat_weights)])
hidden = data = targets = None
truth.holds("inputs", "corpus and piece", lambda: [train_data, val_data, data, targets])
truth.holds("inputs", "the state carried over", lambda: [hidden], or_else=["activations", "forward_temporaries"])
with truth.phase("data"):
    hidden = model.init_hidden(COLUMNS)
for batch, i in enumerate(range(0, 4 * BPTT, BPTT)):
    data, targets = train_data[i:i + BPTT], train_data[i + 1:i + 1 + BPTT].view(-1)
    model.zero_grad()
    hidden = repackage_hidden(hidden)
    with truth.phase("forward"):
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-20)
    truth.mark("step")
model.eval()
kept = hidden
truth.holds("inputs", "the state of before", lambda: [kept], or_else=["activations", "forward_temporaries"])
with torch.no_grad():
    hidden = model.init_hidden(10)
    for i in range(0, 2 * BPTT, BPTT):
        data, targets = val_data[i:i + BPTT], val_data[i + 1:i + 1 + BPTT].reshape(-1)
        with truth.phase("forward"):
            output, hidden = model(data, hidden)
            hidden = repackage_hidden(hidden)
        truth.mark("evaluated")
truth.finish()
