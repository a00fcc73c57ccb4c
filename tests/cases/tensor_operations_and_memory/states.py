"""Recurrent states over batches: carried with their graph, cut off, and begun anew."""

import torch
import torch.nn.functional as F
from torch import nn, optim


class Language(nn.Module):
    def __init__(self, vocabulary: int):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 64)
        self.rnn = nn.LSTM(64, 128, batch_first=True)
        self.head = nn.Linear(128, vocabulary)

    def forward(self, tokens, hidden=None):
        out, hidden = self.rnn(self.embedding(tokens), hidden)
        return self.head(out), hidden

    def init_hidden(self, size: int):
        return torch.zeros(1, size, 128), torch.zeros(1, size, 128)


def train(loader, vocabulary: int):
    model = Language(vocabulary)
    optimizer = optim.Adam(model.parameters())
    hidden = model.init_hidden(32)
    for tokens, targets in loader:
        optimizer.zero_grad()
        logits, hidden = model(tokens, hidden)  # expect: hidden-state-not-detached
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()


def train_an_lstm(loader, epochs: int):
    lstm, head = nn.LSTM(8, 16), nn.Linear(16, 1)
    optimizer = optim.SGD([*lstm.parameters(), *head.parameters()], lr=0.1)
    for _ in range(epochs):
        h, c = torch.zeros(1, 4, 16), torch.zeros(1, 4, 16)
        for x, y in loader:
            optimizer.zero_grad()
            out, (h, c) = lstm(x, (h, c))  # expect: hidden-state-not-detached
            F.mse_loss(head(out), y).backward()
            optimizer.step()


def under_another_name(model: nn.Module, loader, optimizer: optim.Optimizer):
    hidden = model.init_hidden(32)
    for tokens, targets in loader:
        logits, new = model(tokens, hidden)  # expect: hidden-state-not-detached
        loss = F.cross_entropy(logits, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hidden = new


def cut_off_under_another_name(model: nn.Module, loader, optimizer: optim.Optimizer):
    hidden = model.init_hidden(32)
    for tokens, targets in loader:
        logits, new = model(tokens, hidden)
        loss = F.cross_entropy(logits, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hidden = new.detach()


class Carrying:
    """The state lives on the trainer."""

    def __init__(self, model: nn.Module, loader):
        self.model, self.loader = model, loader
        self.optimizer = optim.Adam(self.model.parameters())
        self.state = None

    def step(self, x, y):
        self.optimizer.zero_grad()
        out, self.state = self.model(x, self.state)  # expect: hidden-state-not-detached
        F.mse_loss(out, y).backward()
        self.optimizer.step()

    def fit(self):
        for x, y in self.loader:
            self.step(x, y)


def cut_off(model: nn.Module, loader, optimizer: optim.Optimizer):
    hidden = None
    for tokens, targets in loader:
        optimizer.zero_grad()
        logits, hidden = model(tokens, hidden)
        hidden = tuple(each.detach() for each in hidden)
        loss = F.cross_entropy(logits, targets)
        loss.backward()
        optimizer.step()


def cut_off_by_a_helper(model: nn.Module, loader, optimizer: optim.Optimizer, repackage):
    hidden = None
    for tokens, targets in loader:
        hidden = repackage(hidden)
        optimizer.zero_grad()
        logits, hidden = model(tokens, hidden)
        F.cross_entropy(logits, targets).backward()
        optimizer.step()


def cut_off_in_place(model: nn.GRU, loader, optimizer: optim.Optimizer):
    state = torch.zeros(1, 8, 16)
    for x, y in loader:
        optimizer.zero_grad()
        out, state = model(x, state)
        F.mse_loss(out, y).backward()
        optimizer.step()
        state.detach_()


def begun_anew(loader, vocabulary: int):
    model = Language(vocabulary)
    optimizer = optim.Adam(model.parameters())
    for tokens, targets in loader:
        hidden = model.init_hidden(tokens.size(0))
        optimizer.zero_grad()
        logits, hidden = model(tokens, hidden)
        F.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
        optimizer.step()


def unrolled(cell: nn.GRUCell, head: nn.Linear, loader, optimizer: optim.Optimizer):
    for sequence, target in loader:
        state = torch.zeros(sequence.size(1), 16)
        for x in sequence:
            state = cell(x, state)
        optimizer.zero_grad()
        F.mse_loss(head(state), target).backward()
        optimizer.step()


def the_whole_sequence_at_once(cell: nn.GRUCell, sequence, target, optimizer: optim.Optimizer):
    state = torch.zeros(1, 16)
    for x in sequence:
        state = cell(x, state)
    optimizer.zero_grad()
    F.mse_loss(state, target).backward()
    optimizer.step()


@torch.no_grad()
def sample(model: nn.Module, token, count: int):
    hidden = None
    for _ in range(count):
        logits, hidden = model(token, hidden)
        token = logits[:, -1:].argmax(-1)
        yield token


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 16, batch_first=True)
        self.head = nn.Linear(16, 1)
        self.hidden = None

    def forward(self, x):
        out, self.hidden = self.gru(x, self.hidden)  # expect: hidden-state-not-detached
        return self.head(out)


class StatefulAndCut(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 16, batch_first=True)
        self.head = nn.Linear(16, 1)
        self.hidden = None

    def forward(self, x):
        out, hidden = self.gru(x, self.hidden)
        self.hidden = hidden.detach()
        return self.head(out)


class StatefulAndReset(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 16, batch_first=True)
        self.head = nn.Linear(16, 1)
        self.hidden = None

    def reset(self):
        self.hidden = None

    def forward(self, x):
        out, self.hidden = self.gru(x, self.hidden)
        return self.head(out)


def fit(loader, epochs: int):
    model = Stateful()
    optimizer = optim.Adam(model.parameters())
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()


def fit_cut(loader):
    model = StatefulAndCut()
    optimizer = optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


def fit_reset(loader):
    model = StatefulAndReset()
    optimizer = optim.Adam(model.parameters())
    for x, y in loader:
        model.reset()
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
