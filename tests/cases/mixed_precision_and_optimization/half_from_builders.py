"""Models that come out of a builder in float16, and those that only an export casts."""

import torch
from torch import nn
from transformers import AutoModelForCausalLM

kind = torch.float16


def build(width):
    net = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
    return net.to(device="cuda", dtype=kind)  # expect: half-model-trained


def train(batches):
    net = build(10)
    optimizer = torch.optim.AdamW([{"params": net.parameters(), "weight_decay": 0.1}], lr=1e-5)
    for x, y in batches:
        loss = (net(x.to("cuda", kind)) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def tune(batches):
    model = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.float16).cuda()  # expect: half-model-trained
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def distil(batches):
    teacher = AutoModelForCausalLM.from_pretrained("gpt2-xl", torch_dtype=torch.float16).cuda().eval()
    student = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-5)
    for batch in batches:
        with torch.no_grad():
            target = teacher(**batch).logits.float()
        loss = nn.functional.mse_loss(student(**batch).logits, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def plain(width):
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))


def export(model):
    return model.half()


def train_and_export(batches):
    net = plain(10)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5)
    for x, y in batches:
        loss = (net(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(export(net).state_dict(), "net.pt")


class Root(nn.Module):
    eps = 1e-8

    def forward(self, x):
        half = x.half()
        return half / (half.norm(dim=-1, keepdim=True) + self.eps)  # expect: eps-vanishes


class RootInFull(nn.Module):
    eps = 1e-8

    def forward(self, x):
        full = x.float()
        return full / (full.norm(dim=-1, keepdim=True) + self.eps)


def cosine(a, b, eps=1e-8):
    a, b = a.half(), b.half()
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1) + eps)  # expect: eps-vanishes


def train_some(net: nn.Module, batches, small=True):
    net.cuda()
    if small:
        net.half()  # expect: half-model-trained
    weights = [p for name, p in net.named_parameters() if "bias" not in name]
    optimizer = torch.optim.SGD(weights, lr=0.1)
    for x in batches:
        optimizer.zero_grad()
        net(x).float().mean().backward()
        optimizer.step()
