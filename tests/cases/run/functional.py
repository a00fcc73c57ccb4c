"""Gradients taken by torch.func: of a plain function, of an ensemble, of each sample by itself; meta-learning."""

import copy

import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, stack_module_state, vmap

torch.manual_seed(0)


def batch():
    x = torch.randn(32, 5)
    return x, x.sum(1, keepdim=True).sin()


def error(parameters, x, y):
    return nn.functional.mse_loss(functional_call(model, parameters, (x,)), y)


model = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 1))
plain = {name: value.detach() for name, value in model.named_parameters()}
for _ in range(40):
    slopes, _loss = grad_and_value(error)(plain, *batch())
    plain = {name: plain[name] - 0.1 * slopes[name] for name in plain}

members = [nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1)) for _ in range(4)]
parameters, buffers = stack_module_state(members)
shape = copy.deepcopy(members[0]).to("meta")
optimizer = torch.optim.Adam(parameters.values(), 1e-2)
for _ in range(40):
    x, y = batch()
    of_all = vmap(lambda p, b, x: functional_call(shape, (p, b), (x,)), (0, 0, None))(parameters, buffers, x)
    optimizer.zero_grad()
    ((of_all - y) ** 2).mean((1, 2)).sum().backward()
    optimizer.step()

of_each = vmap(grad(lambda p, x, y: error(p, x[None], y[None])), (None, 0, 0))
private = torch.optim.SGD(model.parameters(), 0.2)
for _ in range(30):
    slopes = of_each(dict(model.named_parameters()), *batch())
    sizes = sum(each.flatten(1).square().sum(1) for each in slopes.values()).sqrt()
    for name, parameter in model.named_parameters():
        clipped = torch.einsum("b,b...->...", (1 / (sizes + 1e-6)).clamp(max=1), slopes[name])
        parameter.grad = clipped.detach() / 32 + 0.001 * torch.randn_like(parameter)
    private.step()
    private.zero_grad()

outer = torch.optim.Adam(model.parameters(), 1e-3)
for _ in range(20):
    outer.zero_grad()
    for _task in range(4):
        fast = dict(model.named_parameters())
        slopes = torch.autograd.grad(error(fast, *batch()), fast.values(), create_graph=True)
        fast = {name: value - 0.01 * slope for (name, value), slope in zip(fast.items(), slopes, strict=True)}
        (error(fast, *batch()) / 4).backward()
    outer.step()
