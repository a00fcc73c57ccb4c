"""A train of transformers that writes down each step, broken off and gone on with."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from torchtriage.toolkit import seed_everything
from torchtriage.toolkit.transformers import StateCallback


class Words(Dataset[Any]):
    """Sentences of eight words; what they are about is told by the first one."""

    def __init__(self, augment: bool) -> None:
        self.words = torch.randint(2, 30, (48, 8), generator=torch.Generator().manual_seed(1))
        self.augment = augment

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> Any:
        words = self.words[index].clone()
        if self.augment:
            words[1 + int(torch.randint(7, (1,)))] = 0
        return {"input_ids": words, "labels": (words[0] > 15).long()}


class Own(Trainer):
    stop: int | None = None
    steps: list[Any]

    def compute_loss(self, model: Any, inputs: Any, *given: Any, **named: Any) -> Any:
        if self.state.global_step == self.stop:
            raise InterruptedError
        loss = super().compute_loss(model, inputs, *given, **named)
        rate = self.lr_scheduler.get_last_lr()
        self.steps.append([self.state.global_step, loss.item().hex(), inputs["input_ids"].sum().item(), rate])
        return loss


def train(folder: str, every: int | None, workers: int, augment: bool, stop: int | None = None) -> Any:
    seed_everything(3)
    config = BertConfig(vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    arguments = TrainingArguments(
        "out", per_device_train_batch_size=8, num_train_epochs=4, learning_rate=1e-2, report_to=[], save_strategy="no",
        disable_tqdm=True, use_cpu=True, dataloader_num_workers=workers, logging_steps=5,
    )  # fmt: skip
    kept = StateCallback(folder, every, keep=2)
    trainer = Own(BertForSequenceClassification(config), arguments, train_dataset=Words(augment), callbacks=[kept])
    trainer.stop, trainer.steps = stop, []
    with contextlib.suppress(InterruptedError):
        trainer.train(resume_from_checkpoint=kept.checkpoint())
    kept.finish()
    return trainer.steps


if __name__ == "__main__":
    torch.set_num_threads(1)
    told = json.loads(sys.argv[1])
    stop = told.pop("stop")
    straight = train("straight", **told)
    before = train("stopped", **told, stop=stop)
    last = max(int(each.name[5:]) for each in Path("stopped").glob("step-*"))
    after = train("stopped", **told)
    print(json.dumps({"straight": straight, "before": before, "last": last, "after": after}))  # noqa: T201
