"""The discriminator's optimizer steps by itself although its loss was scaled; the generator's goes through the scaler."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
judge = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
opt_g = torch.optim.Adam(generator.parameters(), 1e-3)
opt_d = torch.optim.Adam(judge.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
criterion = nn.BCEWithLogitsLoss()
for _ in range(20):
    fake = generator(torch.randn(16, 8))
    opt_d.zero_grad()
    loss_d = criterion(judge(torch.randn(16, 4)), torch.ones(16, 1)) + criterion(
        judge(fake.detach()), torch.zeros(16, 1)
    )
    scaler.scale(loss_d).backward()
    nn.utils.clip_grad_norm_(judge.parameters(), 5000.0)
    opt_d.step()  # expect: scaler-bypassed step 0
    opt_g.zero_grad()
    scaler.scale(criterion(judge(fake), torch.ones(16, 1))).backward()
    scaler.step(opt_g)
    scaler.update()
