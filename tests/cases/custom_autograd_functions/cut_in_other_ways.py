"""Losses with a term, or a frozen judge, that no gradient goes through."""

import pytorch_lightning as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 16, 3, padding=1)
        self.b = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def iou_loss(pred, mask):
    pred = (torch.sigmoid(pred) > 0.5).float()  # expect: no-gradient-by-design
    inter = (pred * mask).sum((1, 2, 3))
    union = pred.sum((1, 2, 3)) + mask.sum((1, 2, 3)) - inter
    return (1 - (inter + 1) / (union + 1)).mean()


def fit(loader: DataLoader, epochs=5):
    net = UNet().cuda()
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    for epoch in range(epochs):
        for batch in loader:
            logits = net(batch["image"].cuda())
            loss = nn.functional.binary_cross_entropy_with_logits(logits, batch["mask"].cuda())
            loss = loss + iou_loss(logits, batch["mask"].cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()


tok = AutoTokenizer.from_pretrained("gpt2")
generator = AutoModelForCausalLM.from_pretrained("gpt2")
critic = AutoModelForCausalLM.from_pretrained("gpt2").requires_grad_(False)
optim = torch.optim.AdamW(generator.parameters(), lr=1e-5)


def critic_step(batch):
    logits = generator(input_ids=batch["input_ids"]).logits
    ids = logits.argmax(-1)  # expect: no-gradient-by-design
    out = critic(input_ids=ids)
    loss = F.cross_entropy(out.logits.flatten(0, 1), batch["labels"].flatten())
    loss.backward()
    optim.step()
    optim.zero_grad()
    return loss.item()


class Compressor(nn.Module):
    def __init__(self, ch=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, ch, 5, 2, 2), nn.GELU(), nn.Conv2d(ch, ch, 5, 2, 2))
        self.decoder = nn.Sequential(nn.ConvTranspose2d(ch, ch, 4, 2, 1), nn.GELU(), nn.ConvTranspose2d(ch, 3, 4, 2, 1))

    def quantise(self, y):
        return torch.round(y)  # expect: no-gradient-by-design

    def forward(self, x):
        y = self.encoder(x)
        y_hat = self.quantise(y)
        return self.decoder(y_hat)


def train(model, loader, opt):
    for img, _ in loader:
        rec = model(img)
        loss = nn.functional.mse_loss(rec, img)
        opt.zero_grad()
        loss.backward()
        opt.step()


def build(cfg):
    net = nn.LSTM(cfg["in"], cfg["hid"], batch_first=True)
    head = nn.Linear(cfg["hid"], 1)
    opt = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=cfg["lr"])
    return {"net": net, "head": head, "opt": opt}


def count_error(pred, y):
    n = pred.round()  # expect: no-gradient-by-design
    return (n - y).abs().mean()


def main(cfg, loader):
    parts = build(cfg)
    for x, y in loader:
        h, _ = parts["net"](x)
        pred = parts["head"](h[:, -1]).squeeze(-1)
        err = count_error(pred, y)
        parts["opt"].zero_grad()
        err.backward()
        parts["opt"].step()


class Keypoints(pl.LightningModule):
    def __init__(self, k=17):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, k, 1))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, idx):
        img, xy = batch
        heat = self(img)
        b, k, h, w = heat.shape
        flat = heat.flatten(2).argmax(-1)  # expect: no-gradient-by-design
        pred = torch.stack([flat % w, flat // w], -1).float()
        loss = nn.functional.smooth_l1_loss(pred, xy)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


class Matcher(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.proj = nn.Linear(d, d)
        self.gate = nn.Linear(d, 1)

    def forward(self, a, b):
        keep = torch.sigmoid(self.gate(a)) > 0.5  # expect: no-gradient-by-design
        a = self.proj(a) * keep
        return F.cosine_similarity(a, self.proj(b))


model = Matcher(128)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(1000):
    a, b, y = torch.randn(64, 128), torch.randn(64, 128), torch.rand(64)
    loss = F.mse_loss(model(a, b), y)
    opt.zero_grad()
    loss.backward()
    opt.step()


class AccuracyLoss(nn.Module):
    def forward(self, outputs, labels):
        _, predicted = torch.max(outputs, 1)  # expect: no-gradient-by-design
        correct = (predicted == labels).float()
        return 1 - correct.mean()


def get_parts(n):
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, n))
    return model, torch.optim.SGD(model.parameters(), 0.1), AccuracyLoss()


def run(loader, device):
    model, opt, crit = get_parts(10)
    model.to(device)
    for i, (x, y) in enumerate(loader):
        opt.zero_grad()
        out = model(x.to(device))
        l = crit(out, y.to(device))
        l.backward()
        opt.step()
        if i % 10 == 0:
            print(i, l.item())
