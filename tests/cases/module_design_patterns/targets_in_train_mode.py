"""The target of Q learning is computed by the model that is trained, in the mode of the training."""

import torch
from builder.networks import MLP
from torch import nn, optim


class Agent:
    def __init__(self, width, actions):
        self.q = MLP(width, [32, actions])
        self.optimizer = optim.Adam(self.q.parameters(), lr=1e-3)

    def act(self, state):
        self.q.eval()
        with torch.no_grad():
            values = self.q(state)
        self.q.train()
        return values.argmax().item()

    def learn(self, states, actions, rewards, next_states):
        with torch.no_grad():
            targets = rewards + 0.99 * self.predict_values(next_states)
        chosen = self.q(states).gather(1, actions)
        loss = nn.functional.mse_loss(chosen, targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def predict_values(self, next_states):
        return self.q(next_states).detach().max(1)[0].unsqueeze(1)

    def play(self, game, memory):
        state = game.reset()
        while not game.done:
            action = self.act(state)
            memory.append((state, action))
            self.learn(*memory.sample())
            state = game.step(action)
