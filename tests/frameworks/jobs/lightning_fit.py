"""A Trainer of Lightning fits a small classifier: as it should be, or with a fault that the argument names."""

import sys
import tempfile

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(lightning.LightningModule):
    def __init__(self, fault):
        super().__init__()
        self.fault = fault
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))

    def forward(self, x):
        if self.fault == "nan" and self.global_step == 40:
            x = torch.log(x)  # fault: nan
        return self.layers(x)

    def training_step(self, batch, index):
        x, y = batch
        if self.fault == "eval":
            self.eval()  # fault: eval
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self(x), y))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-2)


fault = sys.argv[1] if len(sys.argv) > 1 else ""
torch.manual_seed(0)
x = torch.randn(512, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
trainer = lightning.Trainer(
    max_epochs=5,
    accelerator="cpu",
    devices=int(sys.argv[2]) if len(sys.argv) > 2 else 1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    default_root_dir=tempfile.mkdtemp(),
)
trainer.fit(Net(fault), DataLoader(data, 32, shuffle=True), DataLoader(data, 64))
