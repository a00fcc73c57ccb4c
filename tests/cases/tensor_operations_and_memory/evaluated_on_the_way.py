"""eval() at the end of a chain of calls."""

import timm
import torch
from timm.data import create_transform
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

ckpt = torch.load("best.pth", map_location="cpu")
model = timm.create_model("convnext_tiny", num_classes=12)
model.load_state_dict(ckpt["model"])
model.cuda().eval()
loader = DataLoader(ImageFolder("test", create_transform(224)), batch_size=64, num_workers=8)
hits = total = 0
for images, labels in loader:
    out = model(images.cuda())  # expect: eval-builds-graph
    hits += (out.argmax(1).cpu() == labels).sum().item()
    total += labels.numel()
print(f"top1 {100 * hits / total:.2f}")
