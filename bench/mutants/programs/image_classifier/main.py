import argparse
from pathlib import Path

import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader

from dataset import CLASSES, Compose, FigureDataset, Normalize, RandomFlip, RandomShift
from resnet import resnet_small
from utils import (
    AverageMeter,
    ProgressMeter,
    accuracy,
    mixup,
    random_states,
    save_checkpoint,
    seed_everything,
    seed_worker,
    set_random_states,
)

parser = argparse.ArgumentParser(description="Training of a small residual network")
parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="where checkpoints go")
parser.add_argument("--seed", default=0, type=int)
parser.add_argument("-j", "--workers", default=1, type=int, metavar="N", help="processes that load training data")
parser.add_argument("--epochs", default=5, type=int, metavar="N")
parser.add_argument("-b", "--batch-size", default=32, type=int, metavar="N")
parser.add_argument("--train-size", default=640, type=int, metavar="N")
parser.add_argument("--val-size", default=400, type=int, metavar="N")
parser.add_argument("--lr", default=0.2, type=float, metavar="LR", help="highest learning rate")
parser.add_argument("--momentum", default=0.9, type=float)
parser.add_argument("--wd", "--weight-decay", default=5e-4, type=float, dest="weight_decay")
parser.add_argument("--label-smoothing", default=0.05, type=float)
parser.add_argument("--mixup", default=0.1, type=float, metavar="ALPHA", help="0 switches mixup off")
parser.add_argument("-p", "--print-freq", default=10, type=int, metavar="N")
parser.add_argument("--resume", default=None, type=Path, metavar="PATH")
parser.add_argument("-e", "--evaluate", action="store_true", help="evaluate the resumed model and stop")


def get_loaders(args, generator):
    train_set = FigureDataset(
        args.train_size, seed=10, transform=Compose(RandomFlip(), RandomShift(pixels=1), Normalize())
    )
    val_set = FigureDataset(args.val_size, seed=11, transform=Normalize())
    pinned = torch.cuda.is_available()
    train_loader = DataLoader(
        train_set,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
        worker_init_fn=seed_worker,
        generator=generator,
        pin_memory=pinned,
    )
    val_loader = DataLoader(val_set, batch_size=100, shuffle=False, num_workers=0, pin_memory=pinned)
    return train_loader, val_loader


def train(loader, model, criterion, optimizer, scheduler, epoch, device, args):
    losses = AverageMeter("Loss", ".4f")
    progress = ProgressMeter(len(loader), [losses], prefix=f"Epoch: [{epoch}]")

    model.train()
    for i, (images, target) in enumerate(loader, start=1):
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        images, soft_target = mixup(images, target, len(CLASSES), args.mixup)

        output = model(images)
        loss = criterion(output, soft_target)
        losses.update(loss, images.size(0))

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()

        if i % args.print_freq == 0:
            progress.display(i)


def validate(loader, model, criterion, device):
    losses = AverageMeter("Loss", ".4f")
    top1 = AverageMeter("Acc@1", ".2f")
    top2 = AverageMeter("Acc@2", ".2f")

    model.eval()
    with torch.no_grad():
        for images, target in loader:
            images = images.to(device, non_blocking=True)
            target = target.to(device, non_blocking=True)
            output = model(images)
            acc1, acc2 = accuracy(output, target, topk=(1, 2))
            losses.update(criterion(output, target), images.size(0))
            top1.update(acc1, images.size(0))
            top2.update(acc2, images.size(0))

    print(f" * {top1}  {top2}  {losses}")
    return top1.avg


def parameter_groups(model, weight_decay):
    """Weights of layers are decayed; biases and the scales of the normalisation are not."""
    decayed, others = [], []
    for parameter in model.parameters():
        (decayed if parameter.ndim > 1 else others).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def main():
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    seed_everything(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")

    generator = torch.Generator().manual_seed(args.seed)
    train_loader, val_loader = get_loaders(args, generator)

    model = resnet_small(num_classes=len(CLASSES)).to(device)
    train_criterion = nn.CrossEntropyLoss(label_smoothing=args.label_smoothing)
    val_criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(parameter_groups(model, args.weight_decay), lr=args.lr, momentum=args.momentum, nesterov=True)
    scheduler = OneCycleLR(optimizer, max_lr=args.lr, total_steps=args.epochs * len(train_loader), pct_start=0.25)

    start_epoch = 0
    best_acc1 = 0.0
    if args.resume is not None:
        checkpoint = torch.load(args.resume, map_location="cpu", weights_only=True)
        start_epoch = checkpoint["epoch"]
        best_acc1 = checkpoint["best_acc1"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        generator.set_state(checkpoint["generator"])
        set_random_states(checkpoint["random_states"])
        print(f"=> loaded '{args.resume}' (epoch {start_epoch})")

    if args.evaluate:
        validate(val_loader, model, val_criterion, device)
        return

    for epoch in range(start_epoch, args.epochs):
        train(train_loader, model, train_criterion, optimizer, scheduler, epoch, device, args)
        acc1 = validate(val_loader, model, val_criterion, device)

        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        save_checkpoint(
            {
                "epoch": epoch + 1,
                "state_dict": model.state_dict(),
                "best_acc1": best_acc1,
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "generator": generator.get_state(),
                "random_states": random_states(),
            },
            args.out,
            is_best,
        )

    print(f"best accuracy {best_acc1:.2f}")


if __name__ == "__main__":
    main()
