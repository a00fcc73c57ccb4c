"""A backward that is scaled in one arm of a condition, and the step that belongs to both arms."""

import torch


class Trainer:
    def __init__(self, cfg, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
        self.scaler = torch.amp.GradScaler("cuda") if cfg.mixed else None

    def backward(self, loss):
        if self.scaler is not None:
            self.scaler.scale(loss).backward()
        else:
            loss.backward()

    def update(self):
        self.optimizer.step()  # expect: scaler-bypassed
        if self.scaler is not None:
            self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)

    def run(self):
        for tokens in self.loader:
            loss = self.model(tokens)
            self.backward(loss)
            self.update()


def each_by_its_own(model, loader, optimizer, scaler):
    for x in loader:
        loss = model(x)
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if scaler is not None:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()


class LeavesEarly:
    def __init__(self, model, mixed):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler("cuda") if mixed else None

    def update(self):
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
            return
        self.optimizer.step()

    def train(self, loader):
        for x in loader:
            self.optimizer.zero_grad()
            loss = self.model(x)
            if self.scaler is not None:
                self.scaler.scale(loss).backward()
            else:
                loss.backward()
            self.update()
