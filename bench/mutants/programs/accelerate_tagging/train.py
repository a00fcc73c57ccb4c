"""Named entity tagging with Accelerate."""

import argparse
import json
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, ProjectConfiguration, set_seed
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader

from tagger import (
    TAGS,
    VOCAB_SIZE,
    SpanScore,
    TaggedSentences,
    Tagger,
    collate,
    sentence_loss,
)


class Progress:
    """The number of finished epochs and the course of the figures; saved with the other states."""

    def __init__(self) -> None:
        self.epoch = 0
        self.history: list[dict[str, float]] = []

    def state_dict(self) -> dict:
        return {"epoch": self.epoch, "history": self.history}

    def load_state_dict(self, state: dict) -> None:
        self.epoch = state["epoch"]
        self.history = state["history"]


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--train-sentences", type=int, default=512)
    parser.add_argument("--eval-sentences", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--accumulation-steps", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2e-2)
    parser.add_argument("--max-grad-norm", type=float, default=1.0)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--log-every", type=int, default=8, help="updates between two lines")
    parser.add_argument("--resume", type=Path, help="folder of a state saved earlier")
    return parser.parse_args()


def evaluate(accelerator: Accelerator, model: torch.nn.Module, loader: DataLoader) -> dict[str, float]:
    model.eval()
    score = SpanScore(TAGS)
    losses = []
    for batch in loader:
        with torch.no_grad():
            logits = model(batch["words"], batch["lengths"])
            loss = sentence_loss(logits, batch["tags"])
        predicted, expected = accelerator.gather_for_metrics((logits.argmax(dim=-1), batch["tags"]))
        losses.append(accelerator.gather_for_metrics(loss.expand(len(batch["tags"]))))
        score.add(predicted, expected)
    return {"loss": torch.cat(losses).mean().item(), **score.compute()}


def main() -> None:
    args = parse_args()
    accelerator = Accelerator(
        gradient_accumulation_steps=args.accumulation_steps,
        project_config=ProjectConfiguration(project_dir=str(args.out)),
        dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True),
        step_scheduler_with_optimizer=True,
    )
    args.out.mkdir(parents=True, exist_ok=True)
    set_seed(args.seed)

    train_set = TaggedSentences(args.train_sentences, seed=1000)
    eval_set = TaggedSentences(args.eval_sentences, seed=2000)
    train_loader = DataLoader(
        train_set,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        collate_fn=collate,
        generator=torch.Generator().manual_seed(args.seed),
    )
    eval_loader = DataLoader(eval_set, batch_size=50, collate_fn=collate)

    model = Tagger(VOCAB_SIZE, len(TAGS), hidden=args.hidden)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
    updates = args.epochs * (len(train_loader) // args.accumulation_steps)
    scheduler = LinearLR(optimizer, start_factor=1.0, end_factor=0.05, total_iters=updates)
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, scheduler
    )
    progress = Progress()
    accelerator.register_for_checkpointing(progress)
    if args.resume:
        accelerator.load_state(str(args.resume))
        accelerator.print(f"resumed after epoch {progress.epoch}")

    accelerator.print(f"{updates} updates of {args.accumulation_steps} x {args.batch_size} sentences")
    for epoch in range(progress.epoch, args.epochs):
        model.train()
        train_loader.set_epoch(epoch)
        loss_sum = torch.zeros((), device=accelerator.device)
        batches = update = 0
        for batch in train_loader:
            with accelerator.accumulate(model):
                logits = model(batch["words"], batch["lengths"])
                loss = sentence_loss(logits, batch["tags"])
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), args.max_grad_norm)
                    update += 1
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            loss_sum += loss.detach()
            batches += 1
            if accelerator.sync_gradients and update % args.log_every == 0:
                accelerator.print(f"epoch {epoch + 1} update {update:3d}: loss {loss_sum.item() / batches:.4f}")

        figures = evaluate(accelerator, model, eval_loader)
        accelerator.print("eval " + ", ".join(f"{name} = {value:.4f}" for name, value in figures.items()))
        progress.epoch = epoch + 1
        progress.history.append(figures)
        accelerator.save_state(str(args.out / f"epoch_{epoch + 1}"))

    if accelerator.is_main_process:
        (args.out / "history.json").write_text(json.dumps(progress.history, indent=2))
    accelerator.print(f"final span_f1 = {progress.history[-1]['span_f1']:.4f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
