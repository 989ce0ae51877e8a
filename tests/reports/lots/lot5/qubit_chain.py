# SPDX-License-Identifier: Apache-2.0
"""A variational circuit prepares the ground state of a chain of spins: layers of rotations and controlled phases."""
import sys

import torch
from torch import nn

QUBITS, LAYERS = 18, 10


def rotate(state, qubit, angle, axis):
    c, s = (angle / 2).cos(), (angle / 2).sin()
    a, b = state.view(2 ** qubit, 2, -1).unbind(1)
    if axis == "y":
        return torch.stack([c * a - s * b, s * a + c * b], 1).flatten()
    return torch.stack([torch.complex(c, -s) * a, torch.complex(c, s) * b], 1).flatten()


def entangle(state, qubit):
    sign = torch.tensor([1.0, 1.0, 1.0, -1.0], device=state.device).view(1, 4, 1)
    return (state.view(2 ** qubit, 4, -1) * sign).flatten()


def circuit():
    for layer in range(LAYERS):
        for qubit in range(QUBITS):
            yield "y", qubit, (layer, qubit, 0)
            yield "z", qubit, (layer, qubit, 1)
        for qubit in range(layer % 2, QUBITS - 1, 2):
            yield "cz", qubit, None


def apply(gate, state, angles, sign=1):
    kind, qubit, place = gate
    return entangle(state, qubit) if kind == "cz" else rotate(state, qubit, sign * angles[place], kind)


class AdjointCircuit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, state, angles):
        for gate in circuit():
            state = apply(gate, state, angles)
        ctx.save_for_backward(state, angles)
        return state

    @staticmethod
    def backward(ctx, adjoint):
        state, angles = ctx.saved_tensors
        gradient = torch.zeros_like(angles)
        for gate in reversed(list(circuit())):
            state = apply(gate, state, angles, -1)
            if gate[2] is not None:
                angle = angles[gate[2]].detach().requires_grad_()
                with torch.enable_grad():
                    after = rotate(state, gate[1], angle, gate[0])
                gradient[gate[2]] = torch.autograd.grad(after, angle, adjoint)[0]
            adjoint = apply(gate, adjoint, angles, -1)
        return None, gradient


def energy(state, field=0.7):
    probability = state.abs() ** 2
    total = 0
    for qubit in range(QUBITS - 1):
        pairs = probability.view(2 ** qubit, 4, -1).sum((0, 2))
        total = total - (pairs[0] - pairs[1] - pairs[2] + pairs[3])
    a, b = state.view(-1, 2).unbind(1)
    return total - field * 2 * (a.conj() * b).real.sum()


angles = nn.Parameter(0.1 * torch.randn(LAYERS, QUBITS, 2, device="cuda"))
optimizer = torch.optim.Adam([angles], lr=0.05)
start = torch.zeros(2 ** QUBITS, dtype=torch.complex64, device="cuda")
start[0] = 1
for step in range(3):
    state = start
    if sys.argv[1] == "fixed":
        state = AdjointCircuit.apply(state, angles)
    else:
        for gate in circuit():
            state = apply(gate, state, angles)
    loss = energy(state)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
