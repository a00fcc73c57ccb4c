"""Models that make themselves half, half values that are created so, and probabilities of the true class."""

import torch
from torch import nn
from transformers import T5ForConditionalGeneration


class TextCNN(nn.Module):
    def __init__(self, vocabulary, classes):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 128)
        self.fc = nn.Linear(128, classes)
        self.half()  # expect: half-model-trained

    def forward(self, ids):
        return self.fc(self.embedding(ids).amax(1))


def train(loader):
    model = TextCNN(30000, 4).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for ids, y in loader:
        loss = nn.functional.cross_entropy(model(ids.cuda()).float(), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def summarize(batches):
    model = T5ForConditionalGeneration.from_pretrained("t5-small", torch_dtype=torch.float16)  # expect: half-model-trained
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def generate(batches):
    model = T5ForConditionalGeneration.from_pretrained("t5-small", torch_dtype=torch.float16)
    return [model.generate(**batch) for batch in batches]


class Whiten:
    eps = 1e-10

    def __call__(self, x):
        x = x.to("cuda", torch.float16)
        mean = x.mean(0)
        return (x - mean) / (x - mean).pow(2).mean(0).add(self.eps).sqrt()  # expect: eps-vanishes


def dice(pred, target, smooth=1e-8):
    pred = torch.sigmoid(pred).half().flatten(1)
    target = target.half().flatten(1)
    union = torch.sum(pred, dim=1) + torch.sum(target, dim=1)
    return 1 - 2 * (pred * target).sum(1) / (union + smooth)  # expect: eps-vanishes


def shares(n):
    w = torch.zeros(n, dtype=torch.float16)
    return w / (w.sum() + 1e-9)  # expect: eps-vanishes


def scaled_rows(x):
    h = x.type(torch.float16)
    amax = h.abs().amax(dim=1, keepdim=True)
    return h / torch.clamp(amax, min=1e-8)  # expect: eps-vanishes


def in_full_format(x):
    h = x.type(torch.float32)
    w = torch.zeros(3, dtype=torch.float32)
    return h / torch.clamp(h.abs().amax(dim=1, keepdim=True), min=1e-8), w / (w.sum() + 1e-9)


def focal(logits, target, gamma=2.0):
    p = torch.sigmoid(logits)
    pt = torch.where(target > 0, p, 1 - p)
    return (-((1 - pt) ** gamma) * pt.log()).mean()  # expect: unstable-composition


def focal_by_product(logits, y, gamma=2.0):
    p = torch.sigmoid(logits)
    pt = p * y + (1 - p) * (1 - y)
    return -((1 - pt) ** gamma * torch.log(pt)).mean()  # expect: unstable-composition


def saturating(disc, fake):
    score = torch.sigmoid(disc(fake))
    return torch.log(1 - score).mean()  # expect: unstable-composition


def guarded(logits, target):
    p = torch.sigmoid(logits)
    return torch.where(target > 0, p, torch.ones_like(p)).log(), torch.log(1 - p + 1e-6)


def softplus(raw):
    return (1 + raw.exp()).log()  # expect: unstable-composition


class Finetune:
    def __init__(self, backbone, head):
        self.backbone, self.head = backbone, head
        self.to_half()
        self.optimizer = torch.optim.SGD([*self.backbone.parameters(), *self.head.parameters()], lr=1e-3)

    def to_half(self):
        self.backbone.half()  # expect: half-model-trained
        self.head.half()  # expect: half-model-trained

    def train(self, loader):
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.head(self.backbone(x)), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


class Exported:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def export(self, path):
        self.net.half()
        torch.save(self.net.state_dict(), path)

    def train(self, loader):
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.net(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def made_half(batches):
    model = nn.Linear(256, 8, dtype=torch.float16)  # expect: half-model-trained
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for x, y in batches:
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Settings:
    lr = 1e-3
    dtype = torch.half


class Runner:
    def __init__(self, net, cfg=Settings):
        self.net = net.to("cuda", cfg.dtype)  # expect: half-model-trained
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=cfg.lr)

    def run(self, loader):
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.net(x).float(), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def quantize(weight, bits=8):
    w = weight.detach().to(torch.float16)
    scale = w.abs().max(dim=1, keepdim=True).values / (2 ** (bits - 1) - 1)
    return torch.round(w / (scale + 1e-8)), scale  # expect: eps-vanishes


def wrapped(model, loader):
    model = model.to(torch.float16)  # expect: half-model-trained
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(parallel.parameters(), lr=1e-4)
    for x, y in loader:
        loss = nn.functional.mse_loss(parallel(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def in_groups(model, loader):
    model = model.half()  # expect: half-model-trained
    optimizer = torch.optim.AdamW([{"params": model.body.parameters()}, {"params": model.head.parameters(), "lr": 1e-3}])
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def head_in_full_format(model, loader):
    model = model.half()
    model.head.float()
    optimizer = torch.optim.AdamW(model.head.parameters(), lr=1e-3)
    for x, y in loader:
        loss = nn.functional.mse_loss(model.head(model.body(x).float()), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def divergence(a, b):
    p, q = torch.softmax(a, -1), torch.softmax(b, -1)
    m = 0.5 * (p + q)
    return (p * (p.log() - m.log())).sum(-1) + (q * q.log()).sum(-1)  # expect: unstable-composition
