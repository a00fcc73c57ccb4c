# command: train.py
# options: --stop-after 12 --resume-args gan.pt
# expect: resume-differs rng-torch
"""Two networks with an optimizer each, gradients of the one that stay while the other learns; all is kept."""

import os
import sys

import torch
from torch import nn

torch.manual_seed(1)
make = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
judge = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
of_make = torch.optim.Adam(make.parameters(), lr=2e-3, betas=(0.5, 0.999))
of_judge = torch.optim.Adam(judge.parameters(), lr=2e-3, betas=(0.5, 0.999))
loss = nn.BCEWithLogitsLoss()
iteration = 0
if len(sys.argv) > 1:
    saved = torch.load(sys.argv[1])
    make.load_state_dict(saved["make"])
    judge.load_state_dict(saved["judge"])
    of_make.load_state_dict(saved["of_make"])
    of_judge.load_state_dict(saved["of_judge"])
    iteration = saved["iteration"]
while iteration < 30:
    real = torch.randn(16, 2) + 2
    fake = make(torch.randn(16, 4))
    of_judge.zero_grad()
    (loss(judge(real), torch.ones(16, 1)) + loss(judge(fake.detach()), torch.zeros(16, 1))).backward()
    of_judge.step()
    of_make.zero_grad()
    loss(judge(fake), torch.ones(16, 1)).backward()
    of_make.step()
    iteration += 1
    if iteration % 5 == 0:
        torch.save({"make": make.state_dict(), "judge": judge.state_dict(), "of_make": of_make.state_dict(),
                    "of_judge": of_judge.state_dict(), "rng": torch.get_rng_state(), "iteration": iteration}, "gan.pt.new")
        os.replace("gan.pt.new", "gan.pt")
