# SPDX-License-Identifier: Apache-2.0
"""A network that solves a differential equation: points that require grad, derivatives of the second order by autograd.grad
with their graphs, all points at once, a constant of the equation learned as well, then a picture of the solution."""
import torch
from torch import nn

import runner
import truth

device = torch.device("cuda:0")


class DNN(torch.nn.Module):
    def __init__(self, layers):
        super(DNN, self).__init__()
        parts = []
        for a, b in zip(layers[:-2], layers[1:-1]):
            parts += [nn.Linear(a, b), nn.Tanh()]
        self.layers = nn.Sequential(*parts, nn.Linear(layers[-2], layers[-1]))

    def forward(self, x):
        return self.layers(x)


class PhysicsInformedNN:
    def __init__(self, X_f, X_u, u):
        self.x_f = torch.tensor(X_f[:, 0:1], requires_grad=True).float().to(device)
        self.t_f = torch.tensor(X_f[:, 1:2], requires_grad=True).float().to(device)
        self.x_u, self.t_u = X_u[:, 0:1].to(device), X_u[:, 1:2].to(device)
        self.u = u.to(device)
        self.lambda_1 = torch.nn.Parameter(torch.tensor([0.0], requires_grad=True).to(device))
        self.dnn = DNN([2, 256, 256, 256, 256, 1]).to(device)
        self.dnn.register_parameter("lambda_1", self.lambda_1)
        self.optimizer = torch.optim.Adam(self.dnn.parameters())

    def net_u(self, x, t):
        return self.dnn(torch.cat([x, t], dim=1))

    def net_f(self, x, t):
        u = self.net_u(x, t)
        u_t = torch.autograd.grad(u, t, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        u_x = torch.autograd.grad(u, x, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, grad_outputs=torch.ones_like(u_x), retain_graph=True, create_graph=True)[0]
        return u_t + self.lambda_1 * u * u_x - 0.003 * u_xx

    def train(self, steps):
        self.dnn.train()
        for _ in range(steps):
            with truth.phase("forward"):
                u_pred, f_pred = self.net_u(self.x_u, self.t_u), self.net_f(self.x_f, self.t_f)
                loss = torch.mean((self.u - u_pred) ** 2) + torch.mean(f_pred ** 2)
            truth.mark("forward")
            self.optimizer.zero_grad()
            with truth.phase("backward"):
                loss.backward()
            truth.mark("backward")
            with truth.phase("step"):
                self.optimizer.step()
            truth.mark("step")

    def predict(self, X):
        x = torch.tensor(X[:, 0:1], requires_grad=True).float().to(device)
        t = torch.tensor(X[:, 1:2], requires_grad=True).float().to(device)
        self.dnn.eval()
        u, f = self.net_u(x, t), self.net_f(x, t)
        return u.detach().cpu().numpy(), f.detach().cpu().numpy()


pinn = PhysicsInformedNN(torch.rand(10000, 2).numpy(), torch.rand(2000, 2), torch.rand(2000, 1))
runner.declare(pinn.dnn, pinn.optimizer)
truth.holds("inputs", "points", lambda: [pinn.x_f, pinn.t_f, pinn.x_u, pinn.t_u, pinn.u])
pinn.train(3)
with truth.phase("forward"):
    kept = pinn.predict(torch.rand(10000, 2).numpy())
truth.mark("drawn")
pinn.train(1)
truth.finish()
