"""Training loops that evaluate in between, in plain functions."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.body(x))


def train_with_mode_once(train_set, val_set, epochs):
    model = Net(16, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    train_loader, val_loader = DataLoader(train_set, 32), DataLoader(val_set, 32)
    model.train()
    for epoch in range(epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()  # expect: mode-left-in-eval
        correct = 0
        with torch.no_grad():
            for x, y in val_loader:
                correct += (model(x).argmax(1) == y).sum().item()
        print(epoch, correct)


def evaluate(network, loader):
    network.eval()  # expect: mode-left-in-eval
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += F.cross_entropy(network(x), y).item()
        return total / len(loader)


def train_through_helper(train_loader, val_loader, epochs):
    net = Net(16, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    best = 1e9
    for _ in range(epochs):
        for x, y in train_loader:
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
        best = min(best, evaluate(net, val_loader))
    return best


def every_few_steps(model: nn.Module, optimizer, train_loader, val_loader, epochs):
    step = 0
    for epoch in range(epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            step += 1
            if step % 100 == 0:
                model.eval()  # expect: mode-left-in-eval
                with torch.no_grad():
                    scores = [F.cross_entropy(model(a), b).item() for a, b in val_loader]
                print(step, sum(scores))


def restored(train_loader, val_loader, epochs):
    model = Net(16, 3)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, y in val_loader:
                print(F.cross_entropy(model(x), y).item())


def measured(model, loader):
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        values = [model(x).mean().item() for x, _ in loader]
    model.train(was_training)
    return values


def restored_by_helper(train_loader, val_loader, epochs):
    model = Net(16, 3)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        measured(model, val_loader)


def by_phase(loaders, epochs):
    model = Net(16, 3)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            for x, y in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    loss = F.cross_entropy(model(x), y)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()


def last_evaluation(loader, val_loader, limit):
    model = Net(16, 3)
    optimizer = torch.optim.Adam(model.parameters())
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step == limit:
            model.eval()
            with torch.no_grad():
                print([model(a) for a, _ in val_loader])
            break


def frozen_teacher(loader, epochs):
    student, teacher = Net(16, 3), Net(16, 3)
    optimizer = torch.optim.Adam(student.parameters())
    for epoch in range(epochs):
        teacher.eval()
        for x, y in loader:
            with torch.no_grad():
                goal = teacher(x)
            optimizer.zero_grad()
            F.mse_loss(student(x), goal).backward()
            optimizer.step()


def frozen_norms(loader, epochs):
    model = Net(16, 3)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        model.train()
        model.body[1].eval()  # statistics stay as they are
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def style(content, target, steps):
    """The image is trained, not the network."""
    net = Net(16, 3)
    image = content.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([image])
    for _ in range(steps):
        net.eval()
        optimizer.zero_grad()
        F.mse_loss(net(image), target).backward()
        optimizer.step()


def tuned(train_loader, path, epochs):
    model = Net(16, 3)
    model.load_state_dict(torch.load(path))
    model.eval()  # expect: mode-left-in-eval
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    for _ in range(epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def tuned_with_fixed_statistics(train_loader, path, epochs):
    model = Net(16, 3)
    model.load_state_dict(torch.load(path))
    # the running statistics stay frozen
    model.eval()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    for _ in range(epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def adversarial(loader, epochs):
    generator, critic = Net(16, 16), Net(16, 1)
    opt_g = torch.optim.Adam(generator.parameters())
    opt_c = torch.optim.Adam(critic.parameters())
    generator.train()
    critic.train()
    for epoch in range(epochs):
        for x, noise in loader:
            opt_c.zero_grad()
            (critic(generator(noise).detach()).mean() - critic(x).mean()).backward()
            opt_c.step()
            opt_g.zero_grad()
            (-critic(generator(noise)).mean()).backward()
            opt_g.step()
        generator.eval()  # expect: mode-left-in-eval
        with torch.no_grad():
            print(generator(noise)[0])


def adversarial_restored(loader, epochs):
    generator, critic = Net(16, 16), Net(16, 1)
    opt_g = torch.optim.Adam(generator.parameters())
    for epoch in range(epochs):
        for net in (generator, critic):
            net.train()
        for x, noise in loader:
            opt_g.zero_grad()
            (-critic(generator(noise)).mean()).backward()
            opt_g.step()
        for net in (generator, critic):
            net.eval()
        with torch.no_grad():
            print(generator(noise)[0])


def given(model, optimizer, train_loader, val_loader, epochs):
    for epoch in range(epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()  # expect: mode-left-in-eval
        with torch.no_grad():
            print(sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader))


def perceptual(model, extractor, optimizer, loader, epochs):
    for epoch in range(epochs):
        extractor.eval()
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(extractor(model(x)), extractor(y)).backward()
            optimizer.step()
