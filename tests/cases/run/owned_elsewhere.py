"""Gradients outside the optimizer, and rightly: frozen, judged, averaged, waiting, moved by hand, of an input."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 8)
y = x.sum(1, keepdim=True)


def net(out):
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, out))


generator, discriminator = net(8), net(1)
of_generator, of_discriminator = (torch.optim.Adam(each.parameters(), 1e-3) for each in (generator, discriminator))
average = copy.deepcopy(generator).requires_grad_(False)
for _ in range(20):
    of_discriminator.zero_grad()
    (discriminator(generator(x).detach()).mean() - discriminator(x).mean()).backward()
    of_discriminator.step()
    of_generator.zero_grad()
    discriminator(generator(x)).mean().neg().backward()
    of_generator.step()
    for slow, fast in zip(average.parameters(), generator.parameters(), strict=True):
        slow.lerp_(fast, 0.1)

pretrained = net(8)
pretrained.load_state_dict(average.state_dict())
probe = nn.Linear(8, 1)
optimizer = torch.optim.SGD(probe.parameters(), 1e-2)
for _ in range(20):  # a pretrained body that nobody froze
    optimizer.zero_grad()
    nn.functional.mse_loss(probe(pretrained(x)), y).backward()
    optimizer.step()

body, head = net(8), nn.Linear(8, 1)
model = nn.Sequential(body, head)
optimizer = torch.optim.SGD(head.parameters(), 1e-2)
for number in range(40):  # the body joins later
    if number == 20:
        optimizer.add_param_group({"params": body.parameters(), "lr": 1e-3})
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()

fast, momentum = nn.Linear(8, 8), nn.Linear(8, 8)
optimizer = torch.optim.SGD(fast.parameters(), 1e-2)
for _ in range(20):  # the second network follows the first, without no_grad in its forward pass
    optimizer.zero_grad()
    nn.functional.mse_loss(fast(x), momentum(x + 0.1)).backward()
    optimizer.step()
    for slow, quick in zip(momentum.parameters(), fast.parameters(), strict=True):
        slow.data = 0.9 * slow.data + 0.1 * quick.data

judge = net(1).eval()
painter = nn.Linear(8, 8)
optimizer = torch.optim.SGD(painter.parameters(), 1e-2)
for _ in range(20):  # a loss that is a network
    optimizer.zero_grad()
    judge(painter(x)).mean().backward()
    optimizer.step()
