"""Parts that never learn beside others that do, by choice: a dead expert, a task that has no data yet, a head at hand."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.gate.requires_grad_(False)
        nn.init.zeros_(self.gate.weight[3:])
        self.gate.bias[3] = -100.0  # no sample is sent there
        self.experts = nn.ModuleList(nn.Linear(8, 16) for _ in range(4))
        self.tasks = nn.ModuleDict({name: nn.Linear(16, 1) for name in ("sum", "mean", "largest", "smallest")})
        self.scales = nn.ParameterDict({name: nn.Parameter(torch.ones(1)) for name in ("a", "b", "c")})
        self.heads = nn.ModuleDict({name: nn.Linear(16, 16) for name in ("small", "large")})

    def forward(self, x, task, scale):
        chosen = self.gate(x).argmax(1)
        out = x.new_zeros(len(x), 16)
        for number, expert in enumerate(self.experts):
            mine = chosen == number
            if mine.any():
                out[mine] = torch.relu(expert(x[mine]))
        return self.tasks[task](torch.relu(self.heads["small"](out))) * self.scales[scale]


torch.manual_seed(0)
with torch.no_grad():
    model = Model()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
targets = {"sum": torch.sum, "mean": torch.mean, "largest": torch.amax}
for step in range(60):
    x = torch.randn(64, 8)
    optimizer.zero_grad(set_to_none=step < 6)
    for task, of in targets.items():
        if step % 3 != len(task) % 3 or step < 6:
            loss = nn.functional.mse_loss(model(x, task, "ab"[step % 2]), of(x, 1, keepdim=True))
            loss.backward()
    optimizer.step()
