"""Steps in which only a part goes through the scaler: a second loss, another optimizer, a step of one's own."""

import torch
import torch.nn.functional as F
from torch import nn


class TwoLosses:
    def __init__(self, encoder, every=4):
        self.encoder = encoder.cuda()
        self.optimizer = torch.optim.AdamW(self.encoder.parameters(), lr=1e-3)
        self.amp = torch.amp.GradScaler("cuda", init_scale=2.0**14)
        self.every = every

    def fit(self, pairs):
        for turn, (one, other) in enumerate(pairs):
            self.advance(turn, one.cuda(), other.cuda())

    def advance(self, turn, one, other):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.mse_loss(self.encoder(one), other)
        self.amp.scale(loss).backward()
        if turn % self.every == 0:
            smooth = 0.1 * self.encoder(one).pow(2).mean()
            if smooth.requires_grad:
                smooth.backward()  # expect: scaler-bypassed
        self.amp.step(self.optimizer)
        self.amp.update()


def classify_and_shrink(net, batches):
    optimizer = torch.optim.Adam(net.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            out = net(x)
            named = F.cross_entropy(out, y)
            size = out.pow(2).mean()
        scaler.scale(named).backward(retain_graph=True)
        size.backward()  # expect: scaler-bypassed
        scaler.step(optimizer)
        scaler.update()


def penalty_after_unscaling(net, batches):
    """What is added after unscale_ is at the true size, as the gradients are."""
    optimizer = torch.optim.Adam(net.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        penalty = sum(p.pow(2).sum() for p in net.parameters())
        penalty.backward()
        scaler.step(optimizer)
        scaler.update()


def helper_with_its_own_optimizer(net, aux, batches):
    optimizer = torch.optim.Adam(net.parameters())
    optimizer_aux = torch.optim.SGD(aux.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in batches:
        optimizer.zero_grad()
        optimizer_aux.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        own = aux(x).mean()
        own.backward()
        scaler.step(optimizer)
        optimizer_aux.step()
        scaler.update()


def segment(unet, batches, optim, scaler, clip):
    for image, mask in batches:
        optim.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.binary_cross_entropy_with_logits(unet(image), mask)
        scaler.scale(loss).backward()
        scaler.unscale_(optim)
        nn.utils.clip_grad_norm_(unet.parameters(), clip)
        optim.step()  # expect: scaler-bypassed
        scaler.update()


class ByMethods:
    def __init__(self, model, cfg):
        self.model, self.cfg = model.cuda(), cfg
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
        self.scaler = torch.amp.GradScaler("cuda")

    def backward(self, loss):
        self.scaler.scale(loss).backward()

    def advance(self):
        self.optimizer.step()  # expect: scaler-bypassed
        self.optimizer.zero_grad()

    def run(self, batches):
        for batch in batches:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = self.model(batch.cuda()).mean()
            self.backward(loss)
            self.advance()


def one_after_the_other(generator, critic, batches):
    """The critic's unscale_ says nothing about the generator's gradients."""
    opt_g = torch.optim.Adam(generator.parameters())
    opt_d = torch.optim.Adam(critic.parameters())
    scaler_g, scaler_d = torch.amp.GradScaler("cuda"), torch.amp.GradScaler("cuda")
    for real in batches:
        opt_d.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss_d = critic(generator(real).detach()).mean() - critic(real).mean()
        scaler_d.scale(loss_d).backward()
        scaler_d.unscale_(opt_d)
        nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
        scaler_d.step(opt_d)
        scaler_d.update()
        opt_g.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss_g = -critic(generator(real)).mean()
        scaler_g.scale(loss_g).backward()
        nn.utils.clip_grad_norm_(generator.parameters(), 1.0)  # expect: clip-before-unscale
        scaler_g.step(opt_g)
        scaler_g.update()


def the_other_optimizer_unscaled(generator, critic, batches):
    opt_g = torch.optim.Adam(generator.parameters())
    opt_d = torch.optim.Adam(critic.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for real in batches:
        opt_d.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss_d = F.softplus(critic(generator(real).detach())).mean()
        scaler.scale(loss_d).backward()
        scaler.step(opt_d)
        scaler.update()
        opt_g.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss_g = F.softplus(-critic(generator(real))).mean()
        scaler.scale(loss_g).backward()
        scaler.unscale_(opt_d)
        nn.utils.clip_grad_norm_(generator.parameters(), 0.5)  # expect: clip-before-unscale
        scaler.step(opt_g)
        scaler.update()


def both_unscaled_together(generator, critic, batches):
    opt_g = torch.optim.Adam(generator.parameters())
    opt_d = torch.optim.Adam(critic.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for real in batches:
        opt_d.zero_grad()
        opt_g.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss_d = critic(generator(real).detach()).mean() - critic(real).mean()
            loss_g = -critic(generator(real)).mean()
        scaler.scale(loss_d).backward()
        scaler.scale(loss_g).backward()
        scaler.unscale_(opt_d)
        nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
        scaler.unscale_(opt_g)
        nn.utils.clip_grad_norm_(generator.parameters(), 1.0)
        scaler.step(opt_d)
        scaler.step(opt_g)
        scaler.update()


def forecast(net, windows):
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    norms = []

    def record_norm():
        scaler.unscale_(opt)
        norms.append(nn.utils.get_total_norm([p.grad for p in net.parameters()]))

    def advance(window, future):
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.huber_loss(net(window), future)
        scaler.scale(loss).backward()
        record_norm()
        scaler.unscale_(opt)  # expect: scaler-not-updated
        nn.utils.clip_grad_value_(net.parameters(), 0.1)
        scaler.step(opt)
        scaler.update()

    for window, future in windows:
        advance(window.cuda(), future.cuda())


def norm_shown_now_and_then(net, batches, show):
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    for turn, (x, y) in enumerate(batches):
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.huber_loss(net(x), y)
        scaler.scale(loss).backward()
        if turn % 50 == 0:
            scaler.unscale_(opt)
            show(nn.utils.get_total_norm([p.grad for p in net.parameters()]))
        scaler.unscale_(opt)  # expect: scaler-not-updated
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()


def unscaled_once_by_a_flag(net, batches, show):
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    for turn, (x, y) in enumerate(batches):
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.huber_loss(net(x), y)
        scaler.scale(loss).backward()
        done = False
        if turn % 50 == 0:
            scaler.unscale_(opt)
            show(nn.utils.get_total_norm([p.grad for p in net.parameters()]))
            done = True
        if not done:
            scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()


def only_one_of_two_scaled(actor, critic, rollouts):
    actor_opt = torch.optim.Adam(actor.parameters())
    critic_opt = torch.optim.Adam(critic.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for obs, ret in rollouts:
        with torch.autocast("cuda", dtype=torch.float16):
            value = critic(obs)
            policy_loss = -(actor(obs) * (ret - value.detach())).mean()
            value_loss = (value - ret).pow(2).mean()
        actor_opt.zero_grad()
        critic_opt.zero_grad()
        scaler.scale(policy_loss).backward()
        scaler.scale(value_loss).backward()
        scaler.step(actor_opt)
        critic_opt.step()  # expect: scaler-bypassed
        scaler.update()


def critic_in_float32(actor, critic, rollouts):
    """Only the actor is scaled: the critic's own loss is what its own step uses."""
    actor_opt = torch.optim.Adam(actor.parameters())
    critic_opt = torch.optim.Adam(critic.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for obs, ret in rollouts:
        actor_opt.zero_grad()
        critic_opt.zero_grad()
        value_loss = (critic(obs) - ret).pow(2).mean()
        value_loss.backward()
        with torch.autocast("cuda", dtype=torch.float16):
            policy_loss = -(actor(obs) * ret).mean()
        scaler.scale(policy_loss).backward()
        critic_opt.step()
        scaler.step(actor_opt)
        scaler.update()
