"""Distils a wide network into a narrow one: the student learns the teacher's softened outputs."""

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from networks import Network

TEMPERATURE = 2.0


def make_teacher():
    """The teacher; a stand-in for weights that are loaded from a file."""
    with torch.random.fork_rng():
        torch.manual_seed(1000)
        teacher = Network(width=192, depth=4)
        teacher.head.weight.data.mul_(6.0)
    return teacher.eval()


def distillation_loss(student_logits, teacher_logits):
    target = F.softmax(teacher_logits / TEMPERATURE, dim=-1)
    return F.kl_div(F.log_softmax(student_logits / TEMPERATURE, dim=-1), target, reduction="batchmean")


@torch.no_grad()
def agreement(student, teacher, inputs):
    student.eval()
    same = (student(inputs).argmax(1) == teacher(inputs).argmax(1)).float().mean().item()
    student.train()
    return same


def main():
    torch.manual_seed(13)
    inputs = torch.randn(8192, 32)
    loader = DataLoader(TensorDataset(inputs), batch_size=96, shuffle=True, drop_last=True)
    teacher = make_teacher()
    student = Network(width=64, depth=2)
    optimizer = torch.optim.AdamW(student.parameters(), lr=2e-3)
    for epoch in range(3):
        total = 0.0
        for (rows,) in loader:
            with torch.no_grad():
                wanted = teacher(rows)
            logits = student(rows)
            loss = distillation_loss(logits, wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}, agrees {agreement(student, teacher, inputs[:512]):.3f}")
    torch.save(student.state_dict(), "student.pt")


if __name__ == "__main__":
    main()
