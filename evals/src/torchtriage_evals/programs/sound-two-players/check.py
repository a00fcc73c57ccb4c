"""Both players learn, each from its own loss alone."""

from typing import Any

import torch
from torch import nn


def check(program: Any) -> None:
    torch.manual_seed(0)
    generator, discriminator = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    players = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (generator, discriminator)]
    real, noise = torch.randn(16, 2) + 3, torch.randn(16, 3)
    started = [each.detach().clone() for each in (*generator.parameters(), *discriminator.parameters())]
    with torch.no_grad():
        fake = generator(noise)
    program.play(generator, discriminator, *players, real, noise)
    now = [*generator.parameters(), *discriminator.parameters()]
    still = sum(torch.equal(x, y) for x, y in zip(started, now, strict=True))
    assert not still, f"{still} parameters of the two are not trained"
    torch.manual_seed(0)
    nn.Linear(3, 2)
    second = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    seen = torch.cat([second(real), second(fake)])
    wanted = torch.cat([torch.ones(16, 1), torch.zeros(16, 1)])
    (2 * nn.functional.binary_cross_entropy_with_logits(seen, wanted)).backward()
    step = second[0].weight.detach() - 0.1 * second[0].weight.grad
    assert torch.allclose(discriminator[0].weight, step, atol=1e-6), "the discriminator took another step"
