"""Remedies tried in a mirror: are those accepted that help, and useless and harmful ones refused?

python bench/remedies.py [--held] [--only NAME …]: each edit of REMEDIES is tried on a small training, as by
`torchtriage experiment --fix`. Prints what was said of each, how many were right, with Wilson's 95 % interval, and
whether the folder stayed as it was. The edits are by those who wrote the judgement; `check` proposes none of them.

--held: those of remedies_held/cases.toml, which were written without sight of the judgement and frozen before it was
run on them. `check` proposes them, or proposes another edit in whose place a decoy is tried.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import runpy
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
import torch._dynamo  # noqa: F401 - the same: optimizers ask for it
from remedies_held import cases
from unseen import wilson

from torchtriage.examine.trial.experiment.legs import Legs
from torchtriage.examine.trial.experiment.questions import Answers
from torchtriage.examine.trial.experiment.remedies import Judgement, Remedy, Verdict, judge, remedies
from torchtriage.examine.trial.experiment.wanted import Wanted
from torchtriage.examine.trial.leg.execute import Leg
from torchtriage.examine.trial.leg.fork import forking
from torchtriage.triage import probes
from torchtriage.triage.remedies import faults

PROGRAM = """
import time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __init__(self):
        draw = torch.Generator().manual_seed(0)
        self.inputs = torch.randn(4096, 16, generator=draw)
        self.labels = self.inputs[:, :4].argmax(1)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.inputs[index], self.labels[index]


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(16, 64)
        self.head = nn.Linear(64, 4)

    def forward(self, inputs):
        hidden = self.body(inputs).relu()
        return self.head(hidden)


def validate(model, data):
    model.eval()
    right = (model(data.inputs[:512]).argmax(1) == data.labels[:512]).float().mean().item()
    model.train()
    return right


def train():
    torch.manual_seed(1)
    data = Points()
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(data, batch_size=32, shuffle=True, drop_last=True)
    for epoch in range(4):
        for step, (inputs, labels) in enumerate(loader):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                print(epoch, step, loss.item())


train()
"""
STEP = "            optimizer.step()\n"
ZERO = "            optimizer.zero_grad()\n"
AGAIN = "            optimizer.zero_grad(set_to_none=True)\n"
BACKWARD = "            loss.backward()\n"
LOSS = "            loss = nn.functional.cross_entropy(model(inputs), labels)\n"
RATE = "lr=0.01"
PARAMETERS = "model.parameters()"
HIDDEN = "        hidden = self.body(inputs).relu()\n"
PICK = "        return self.inputs[index], self.labels[index]\n"
LOADER = "    loader = DataLoader("
SLOW = "        rows = [float(each) + 0.0 for _ in range(12) for each in self.inputs[index]]\n"
BUSY = """\
            until = time.perf_counter() + 0.004
            while time.perf_counter() < until:
                pass
"""


@dataclass(frozen=True)
class Edit:
    """A program, by replacements in PROGRAM, and one further replacement, the remedy. verdict: what is right."""

    verdict: Verdict
    old: str
    new: str
    program: tuple[tuple[str, str], ...] = ()

    @property
    def texts(self) -> tuple[str, str]:
        before = PROGRAM
        for old, new in self.program:
            before = replaced(before, old, new)
        return before, replaced(before, self.old, self.new)


def replaced(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise ValueError(f"{old!r} is {text.count(old)} times in the program, not once")
    return text.replace(old, new)


def mends(old: str, wrong: str) -> Edit:
    """A remedy that puts OLD in the place of what is WRONG."""
    return Edit(Verdict.HELPS, wrong, old, ((old, wrong),))


def breaks(old: str, wrong: str) -> Edit:
    return Edit(Verdict.HARMS, old, wrong)


def changes_nothing(old: str, new: str) -> Edit:
    return Edit(Verdict.SAME, old, new)


REMEDIES = {
    "rate far too low": mends(RATE, "lr=1e-7"),
    "rate far too high": mends(RATE, "lr=30.0"),
    "gradients never zeroed": mends(ZERO, "            pass\n"),
    "gradients zeroed before the update": mends(BACKWARD + STEP, BACKWARD + AGAIN + STEP),
    "half of the model is not trained": mends(PARAMETERS, "model.head.parameters()"),
    "detached in the middle": mends(HIDDEN, HIDDEN.replace("relu()", "relu().detach()")),
    "a wait in each step": mends(STEP, STEP + BUSY),
    "samples made in Python": mends(PICK, SLOW + PICK),
    "validation in each step": mends(STEP, STEP + "            validate(model, data)\n" * 6),
    "anomaly detection": mends(LOADER, "    torch.autograd.set_detect_anomaly(True)\n" + LOADER),
    "super().__init__ is missing": mends("        super().__init__()\n", "        pass\n"),
    "a function that is gone": mends("    data = Points()\n", "    data = Points()\n    torch.symeig(torch.eye(2))\n"),
    "fails in the tenth step": mends(STEP, STEP + "            assert step < 10\n"),
    "a name": changes_nothing("return self.head(hidden)", "return (self.head)(hidden)"),
    "a comment": changes_nothing(BACKWARD, "            # the gradients\n" + BACKWARD),
    "what is so by default": changes_nothing("shuffle=True", "shuffle=True, num_workers=0"),
    "train() again": changes_nothing("    for epoch in range(4):\n", "    model.train()\n    for epoch in range(4):\n"),
    "a type": changes_nothing("def forward(self, inputs):", "def forward(self, inputs: torch.Tensor) -> torch.Tensor:"),
    "set_to_none=False": changes_nothing("zero_grad()", "zero_grad(set_to_none=False)"),
    "more epochs": changes_nothing("range(4)", "range(5)"),
    "another way to say it": changes_nothing("nn.functional.cross_entropy(", "nn.CrossEntropyLoss()("),
    "logged less often": changes_nothing("step % 50", "step % 60"),
    "rate times 1000": breaks(RATE, "lr=10.0"),
    "rate by 10000": breaks(RATE, "lr=1e-6"),
    "zero_grad taken away": breaks(ZERO, "            pass\n"),
    "zeroed before the update": breaks(BACKWARD, BACKWARD + "            optimizer.zero_grad(set_to_none=False)\n"),
    "only the head is trained": breaks(PARAMETERS, "model.head.parameters()"),
    "detached": breaks(HIDDEN, HIDDEN.replace("relu()", "relu().detach()")),
    "a wait": breaks(STEP, STEP + BUSY),
    "samples in Python": breaks(PICK, SLOW + PICK),
    "no file": breaks("    data = Points()\n", "    data = Points()\n    open('absent')\n"),
    "a name that is not there": breaks(STEP, STEP.replace("optimizer", "optimiser")),
    "a huge weight decay": breaks(RATE, RATE + ", weight_decay=100.0"),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--held", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    given = parser.parse_args()
    trials = {each.name: of_case(each) for each in cases.read()} if given.held else {
        name: of_edit(edit) for name, edit in REMEDIES.items()
    }  # fmt: skip
    if unknown := set(given.only or ()) - trials.keys():
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    right: dict[Verdict, list[bool]] = {}
    untouched = 0
    for name in given.only or trials:
        trial = trials[name]
        began = time.monotonic()
        said, is_same = tried(trial)
        untouched += is_same
        right.setdefault(trial.verdict, []).append(is_right(said.verdict, trial.verdict))
        mark = "" if right[trial.verdict][-1] else "WRONG "
        facts = "; ".join((*said.worse, *said.facts))
        print(f"{mark}{name}: {said.verdict} ({facts}) in {time.monotonic() - began:.0f} s", flush=True)
    for verdict, found in right.items():
        what = {"helps": "helpful, accepted", "harms": "harmful, refused"}.get(verdict, "useless, refused")
        print(f"{what}: {wilson(sum(found), len(found))}")
    print(f"folders as they were: {untouched}/{sum(map(len, right.values()))}")


@dataclass(frozen=True)
class Trial:
    """A training, by its files, and what runs it. remedy: makes the edit, in the folder that the training lies in."""

    verdict: Verdict
    files: Mapping[str, str]
    command: tuple[str, ...]
    remedy: Callable[[], Remedy]


def of_edit(edit: Edit) -> Trial:
    before, after = edit.texts
    remedy = Remedy("-", "edit", "-", "train.py", 1, {"train.py": after.encode()})
    return Trial(edit.verdict, {"train.py": before}, ("train.py",), lambda: remedy)


def of_case(case: cases.Case) -> Trial:
    return Trial(case.verdict, case.files, case.command, case.remedy)


def is_right(said: Verdict, wanted: Verdict) -> bool:
    """A useless one may be called anything but helpful; of a harmful one one has to know."""
    return said is not Verdict.HELPS if wanted is Verdict.SAME else said is wanted


def tried(trial: Trial) -> tuple[Judgement, bool]:
    """What is said of the remedy of TRIAL, and whether the folder of its program stayed as it was."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in trial.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        (folder / "kept.bin").write_bytes(os.urandom(64))
        was = content(folder)
        os.chdir(folder)
        try:
            said = judged(trial.remedy(), trial.command, folder.parent / f"{folder.name}-out")
        finally:
            os.chdir(home)
        return said, content(folder) == was


def judged(remedy: Remedy, command: tuple[str, ...], out: Path) -> Judgement:
    def leg(leg: Leg) -> None:
        sys.argv = list(command)
        sys.path.insert(0, str(leg.mirror.work))  # as `python train.py` has it: the program's other files
        runpy.run_path(str(leg.mirror.work / command[0]), run_name="__main__")

    wanted = Wanted(
        command,
        out,
        frozenset(),
        probes=probes(),
        interventions=probes("interventions"),
        execute=forking(leg),
        say=lambda _: None,
    )
    answers = Answers()
    legs = Legs(wanted, time.monotonic() + 300, {remedy.arm: remedy.files}, faults)
    legs.carry_out(remedies(answers, [remedy]))
    return judge(answers.courses, remedy.arm)


def content(folder: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


if __name__ == "__main__":
    main()
