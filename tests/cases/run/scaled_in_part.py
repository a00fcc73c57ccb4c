"""Of two losses with label smoothing, one is scaled, and the scaler divides what both have left."""

import torch
from torch import nn

torch.manual_seed(0)
body, first, second = nn.Sequential(nn.Linear(8, 16), nn.Tanh()), nn.Linear(16, 3), nn.Linear(16, 2)
optimizer = torch.optim.AdamW([*body.parameters(), *first.parameters(), *second.parameters()], 1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for _ in range(20):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    features = body(x)
    scaler.scale(criterion(first(features), x[:, :3].argmax(1))).backward(retain_graph=True)
    criterion(second(features), x[:, :2].argmax(1)).backward()  # expect: scaler-bypassed step 0
    scaler.step(optimizer)
    scaler.update()
