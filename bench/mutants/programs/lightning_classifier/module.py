from itertools import pairwise

import lightning as L
import torch
from torch import Tensor, nn
from torchmetrics.classification import MulticlassAccuracy


class ConvBlock(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel: int = 5) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(in_channels, out_channels, kernel, stride=2, padding=kernel // 2),
            nn.GroupNorm(4, out_channels),
            nn.GELU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class RecordingClassifier(L.LightningModule):
    """Convolutions over time, the mean and the maximum over time, and a linear layer."""

    def __init__(
        self,
        channels: int,
        num_classes: int,
        width: int = 16,
        depth: int = 3,
        dropout: float = 0.1,
        lr: float = 2e-2,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        widths = [channels, *(width * 2 ** min(index, 1) for index in range(depth))]
        self.encoder = nn.Sequential(*(ConvBlock(a, b) for a, b in pairwise(widths)))
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(2 * widths[-1], num_classes)
        self.criterion = nn.CrossEntropyLoss()
        self.train_accuracy = MulticlassAccuracy(num_classes, average="micro")
        self.val_accuracy = MulticlassAccuracy(num_classes, average="micro")

    def forward(self, x: Tensor) -> Tensor:
        features = self.encoder(x)
        pooled = torch.cat([features.mean(dim=2), features.amax(dim=2)], dim=1)
        return self.classifier(self.dropout(pooled))

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        inputs, labels = batch
        logits = self(inputs)
        loss = self.criterion(logits, labels)
        self.train_accuracy(logits, labels)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        self.log("train_acc", self.train_accuracy, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        inputs, labels = batch
        logits = self(inputs)
        self.val_accuracy(logits, labels)
        self.log("val_loss", self.criterion(logits, labels), on_epoch=True)
        self.log("val_acc", self.val_accuracy, on_epoch=True)

    def configure_optimizers(self) -> dict:
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(
            optimizer,
            max_lr=self.hparams.lr,
            total_steps=int(self.trainer.estimated_stepping_batches),
            pct_start=0.2,
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
