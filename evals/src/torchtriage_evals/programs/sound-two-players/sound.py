"""One round of a generator against a discriminator, each with its own optimizer."""

import torch
from torch import nn


def play(generator, discriminator, for_generator, for_discriminator, real, noise):
    score = nn.functional.binary_cross_entropy_with_logits
    fake = generator(noise)
    for_discriminator.zero_grad()
    seen = discriminator(real), discriminator(fake.detach())
    loss = score(seen[0], torch.ones_like(seen[0])) + score(seen[1], torch.zeros_like(seen[1]))
    loss.backward()
    for_discriminator.step()

    for_generator.zero_grad()
    judged = discriminator(fake)
    fooled = score(judged, torch.ones_like(judged))
    fooled.backward()
    for_generator.step()
    return loss.item(), fooled.item()
