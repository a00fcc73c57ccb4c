"""Many passes with autograd on, and all are used: rollouts, attacks, saliency, pairs, features of another, a solver."""

import torch
from torch import nn

torch.manual_seed(0)


def perceptron(outputs=2):
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, outputs))


# A policy: fifty passes, then one backward through all of them
policy = perceptron()
optimizer = torch.optim.Adam(policy.parameters(), 1e-2)
for _ in range(12):
    chances = []
    for _ in range(50):
        choice = torch.distributions.Categorical(logits=policy(torch.randn(1, 8)))
        chances.append(choice.log_prob(choice.sample()))
    optimizer.zero_grad()
    torch.stack(chances).mean().backward()
    optimizer.step()

# Attacks and saliency maps in evaluation mode, many in a row, by autograd.grad
policy.eval()
for _ in range(30):
    x = torch.randn(4, 8, requires_grad=True)
    (saliency,) = torch.autograd.grad(policy(x).max(1).values.sum(), x)
policy.train()

# A teacher in evaluation mode and a validation, without autograd
teacher, pupil = perceptron().eval(), perceptron()
optimizer = torch.optim.Adam(pupil.parameters(), 1e-2)
for step in range(20):
    x = torch.randn(16, 8)
    with torch.no_grad():
        wanted = teacher(x).softmax(1)
    optimizer.zero_grad()
    nn.functional.cross_entropy(pupil(x), wanted).backward()
    optimizer.step()
    if step % 10 == 9:
        with torch.inference_mode():
            for _ in range(20):
                pupil.eval()(torch.randn(16, 8))
        pupil.train()

# A generator whose fakes are detached for the critic, five times for each of its own steps
generator, critic = perceptron(8), perceptron(1)
makes, judges = (torch.optim.Adam(each.parameters(), 1e-3) for each in (generator, critic))
for _ in range(10):
    for _ in range(5):
        fake = generator(torch.randn(16, 8)).detach()
        judges.zero_grad()
        (critic(fake).mean() - critic(torch.randn(16, 8)).mean()).backward()
        judges.step()
    makes.zero_grad()
    (-critic(generator(torch.randn(16, 8))).mean()).backward()
    makes.step()

# Parts of a picture by one encoder, whose features a head uses that is called by nobody in between
encoder, head = perceptron(4), nn.Linear(24, 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], 1e-3)
for _ in range(12):
    features = [encoder(torch.randn(4, 8)) for _ in range(6)]
    optimizer.zero_grad()
    head(torch.cat(features, 1)).pow(2).mean().backward()
    optimizer.step()

# A solver that tries steps and refuses some of them: not all passes are used
slope = perceptron(8)
optimizer = torch.optim.Adam(slope.parameters(), 1e-3)
for _ in range(10):
    state = torch.randn(4, 8)
    for trial in range(12):
        change = slope(state)
        if trial % 4:
            state = state + 0.1 * change
    optimizer.zero_grad()
    state.pow(2).mean().backward()
    optimizer.step()

# A frozen backbone records no graph; the same sample again and again is a measurement of time
frozen = perceptron().requires_grad_(False)
for _ in range(40):
    frozen(torch.randn(4, 8))
x = torch.randn(4, 8)
for _ in range(40):
    slope(x)
