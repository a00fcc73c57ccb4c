"""Graphs that are kept because they are needed: nothing here is a fault."""

import torch
import torch.nn.functional as F
from torch import nn, optim

model = nn.LSTMCell(8, 8)
head = nn.Linear(8, 1)
optimizer = optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)


def truncated(sequence, target, k1=10):
    state = None
    total = 0.0
    for t in range(sequence.size(0)):
        state = model(sequence[t], state)
        total += F.mse_loss(head(state[0]), target[t])
        if (t + 1) % k1 == 0:
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            state = tuple(part.detach() for part in state)
            total = 0.0


def several_losses(batches):
    losses = []
    for epoch in range(10):
        losses.clear()
        optimizer.zero_grad()
        for batch, target in batches:
            losses.append(F.mse_loss(head(batch), target))
        loss = torch.stack(losses).mean()
        loss.backward()
        optimizer.step()


def policy_gradient(policy: nn.Module, env, episodes):
    policy_optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    for episode in range(episodes):
        log_probs, rewards = [], []
        state, done = env.reset(), False
        while not done:
            distribution = torch.distributions.Categorical(logits=policy(state))
            action = distribution.sample()
            log_probs.append(distribution.log_prob(action))
            state, reward, done = env.step(action.item())
            rewards.append(reward)
        policy_loss = []
        for log_prob, gain in zip(log_probs, rewards):
            policy_loss.append(-log_prob * gain)
        policy_optimizer.zero_grad()
        policy_loss = torch.stack(policy_loss).sum()
        policy_loss.backward()
        policy_optimizer.step()


def style_transfer(image, targets, features: nn.Module):
    tuner = optim.LBFGS([image.requires_grad_()])
    shown = []

    def closure():
        tuner.zero_grad()
        loss = 0
        for feature, target in zip(features(image), targets):
            loss += F.mse_loss(feature, target)
        loss.backward()
        return loss

    for step in range(300):
        loss = tuner.step(closure)
        shown.append(loss.item())
    return shown
