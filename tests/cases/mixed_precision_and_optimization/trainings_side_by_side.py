"""Several trainings in one file: what one of them scales says nothing of the others."""

import contextlib
import torch
from torch import nn
from torch.cuda import amp
import torch.nn.functional as F


class Engine:
    def __init__(self, net, opt, use_amp=True):
        self.net, self.opt = net, opt
        self.use_amp = use_amp
        self._scaler = torch.amp.GradScaler("cuda") if use_amp else None

    def _ctx(self):
        return torch.autocast("cuda", dtype=torch.float16) if self.use_amp else contextlib.nullcontext()

    def step(self, batch):
        self.opt.zero_grad()
        with self._ctx():
            loss = self.net(batch).mean()
        if self._scaler is not None:
            self._scaler.scale(loss).backward()
            self.opt.step()  # expect: scaler-bypassed
            self._scaler.update()
        else:
            loss.backward()
            self.opt.step()

    def fit(self, loader):
        for b in loader:
            self.step(b)


def ppo(agent: nn.Module, buffer, epochs, clip):
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(epochs):
        for obs, act, adv, old_logp in buffer:
            with torch.autocast("cuda"):
                logp, value = agent(obs, act)
                ratio = (logp - old_logp).exp()
                loss = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            total = nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            scaler.unscale_(optimizer)  # expect: scaler-not-updated
            scaler.step(optimizer)
            scaler.update()


class Diffusion:
    def __init__(self, unet):
        self.unet = unet
        self.optim = torch.optim.AdamW(unet.parameters(), lr=1e-4)

    def p_losses(self, x, t, noise):
        pred = self.unet(x + noise, t)
        return F.mse_loss(pred, noise)

    def train(self, loader, steps):
        it = iter(loader)
        for i in range(steps):
            x = next(it).cuda()
            t = torch.randint(0, 1000, (x.size(0),), device="cuda")
            with torch.autocast(device_type="cuda", dtype=torch.half):
                loss = self.p_losses(x, t, torch.randn_like(x))
            self.optim.zero_grad(set_to_none=True)
            loss.backward()  # expect: scaler-missing
            nn.utils.clip_grad_norm_(self.unet.parameters(), 1.0)
            self.optim.step()


def flat():
    model = nn.Linear(3, 3).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = amp.GradScaler()  # expect: amp-api-deprecated
    for i in range(10):
        opt.zero_grad()
        with amp.autocast():  # expect: amp-api-deprecated
            loss = model(torch.randn(3, 3).cuda()).mean()
        scaler.scale(loss).backward()
        scaler.step(opt)  # expect: scaler-not-updated


def closure_style(model, loader, optimizer, scaler):
    def propagate(loss):
        scaler.scale(loss).backward()
        optimizer.step()  # expect: scaler-bypassed
        scaler.update()
        optimizer.zero_grad()

    for x, y in loader:
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        propagate(loss)


def mt(student, loader, opt, teacher):
    teacher.half().eval()
    for x, y in loader:
        opt.zero_grad()
        loss = F.mse_loss(student(x), teacher(x.half()).float())
        loss.backward()
        opt.step()


class LM:
    def __init__(self, cfg):
        self.model = build(cfg).to("cuda").half()  # expect: half-model-trained
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)

    def run(self, loader):
        for ids, labels in loader:
            self.optimizer.zero_grad()
            logits = self.model(ids)
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))
            loss.backward()
            self.optimizer.step()
