"""Learns where words lean, from the rooms' labelled reports, and writes routing/leaning.json. Run by `make learn`.

A multinomial logistic regression over the features that routing/leaning.py scores, with its weights rounded to bytes.
What an expert would accept beside the label counts for a part of the target. A third of each report's features is
dropped in every round, so that no single word carries a report. Reports that are held back are not learned from.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import msgspec
import torch
from torch import Tensor
from torch.nn import EmbeddingBag
from torch.nn.functional import binary_cross_entropy_with_logits

from torchtriage.catalog.load import catalog
from torchtriage.catalog.scenarios import Report, reports, scenarios
from torchtriage.routing.gist import Gist, gist
from torchtriage.routing.leaning import BITS, FILE, Weights, features, length, others, slot
from torchtriage.routing.listen import attend

SLOTS = 1 << BITS
SEEDS = Path(__file__).parent.parent / "tests/routing/seeds.toml"
EXACT, ALSO, HEARD, SCALE = 3.0, 0.35, 0.5, 1 / 3
SURE, MAYBE = 0.75, 0.7
ROUNDS, BATCH, RATE, DECAY, DROPPED = 20, 256, 0.02, 2e-6, 0.35
MODELS = 3
# What is not ours has more forms than can be learned. On the reports held back: 0 gave recall 77 %, precision 94 %;
# 0.3 gave 81 and 92; 0.6 gave 85 and 90.
ELSEWHERE = 0.4
LOUD = 127


class Lesson(msgspec.Struct):
    """One report as it is learned: its targets over answers and rooms, how much it counts, its features."""

    target: Tensor
    wanted: Tensor
    counts: float
    slots: Tensor
    weights: Tensor


def learned() -> tuple[list[Report], list[Report]]:
    """The reports that are not held back; and the exact scenarios with the source documents' own queries."""
    rows = tomllib.loads(SEEDS.read_text(encoding="utf-8"))["row"]
    seeds = [
        Report(query, "plan" if row["route"] else "question", tuple(row["route"]))
        for row in rows
        for query in row["queries"]
    ]
    return [report for report in reports() if not report.held], [*scenarios(), *seeds]


def digest(given: Sequence[Report]) -> str:
    """A checksum of the reports, in any order."""
    return f"{crc32(b''.join(sorted(msgspec.json.encode(report) for report in given))):08x}"


def answer(report: Report) -> str:
    """The name of what REPORT should lean to."""
    return report.route[0] if report.route else f"{report.kind} {report.refer_to or ''}".strip()


def target(report: Report, to: Sequence[str]) -> Tensor:
    """The label, and a part for what else an expert would accept first."""
    share = torch.zeros(len(to))
    main = to.index(answer(report))
    share[main] = 1.0
    also = {to.index(way[0]) for way in report.also if way and report.route} - {main}
    for other in also:
        share[other] = ALSO / len(also)
    return share / share.sum()


def wanted(report: Report, rooms: Sequence[str]) -> Tensor:
    """Whether each specialist is on the route; less surely where an expert would also accept the contrary."""
    return torch.tensor([_wanted(report, room) for room in rooms])


def _wanted(report: Report, room: str) -> float:
    if room in report.route:
        return 1.0 if all(room in way for way in report.also) else SURE
    return 1 - MAYBE if any(room in way for way in report.also) else 0.0


def slots(told: Gist) -> list[int]:
    words = [feature for word in told.words for feature in features(word)]
    return [slot(feature) for feature in (*words, *others(told))]


def rarities(gists: Sequence[Gist]) -> Tensor:
    """The inverse document frequency of each slot; 0 where only one report has it."""
    seen = torch.zeros(SLOTS)
    for told in gists:
        seen[sorted(set(slots(told)))] += 1
    return torch.where(seen < 2, 0.0, torch.log(len(gists) / seen.clamp(min=1)) + 1)


def lessons(told: Sequence[Report], exact: Sequence[Report]) -> tuple[list[Lesson], list[str], list[str], Tensor]:
    """Every report as a lesson; the answers, what can be heard, and the rarity of each slot."""
    given = [*told, *exact]
    gists = [gist(attend(report.text)) for report in given]
    rarity = rarities(gists)
    to = sorted({answer(report) for report in given})
    rooms = catalog().specialists
    heard = sorted({name for each in gists for name in each.heard})
    numbers = {name: SLOTS + at for at, name in enumerate(heard)}
    made = []
    for at, (report, each) in enumerate(zip(given, gists, strict=True)):
        found = torch.tensor(slots(each), dtype=torch.long)
        named = torch.tensor([numbers[name] for name in each.heard], dtype=torch.long)
        weights = torch.cat([rarity[found] * SCALE / length(len(found)), torch.full((len(named),), HEARD)])
        counts = 1.0 if at < len(told) else EXACT
        made.append(Lesson(target(report, to), wanted(report, rooms), counts, torch.cat([found, named]), weights))
    return made, to, heard, rarity


def fitted(given: Sequence[Lesson], width: int, height: int, seed: int) -> tuple[Tensor, Tensor]:
    """The weights (HEIGHT x WIDTH) and biases of one model."""
    torch.manual_seed(seed)
    table, bias = EmbeddingBag(height, width, mode="sum"), torch.nn.Parameter(torch.zeros(width))
    torch.nn.init.zeros_(table.weight)
    optimizer = torch.optim.Adam([table.weight, bias], lr=RATE)
    targets, wanted = (torch.stack([getattr(each, name) for each in given]) for name in ("target", "wanted"))
    counts, answers = torch.tensor([each.counts for each in given]), targets.shape[1]
    for turn in range(ROUNDS):
        optimizer.param_groups[0]["lr"] = RATE * (1 - turn / ROUNDS) + 1e-4
        for part in torch.randperm(len(given)).split(BATCH):
            logits = table(*_bags([given[at] for at in part.tolist()])) + bias
            loss = -(targets[part] * logits[:, :answers].log_softmax(1)).sum(1)
            loss = loss + binary_cross_entropy_with_logits(logits[:, answers:], wanted[part], reduction="none").sum(1)
            loss = (loss * counts[part]).mean() + DECAY * (table.weight**2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return table.weight.detach(), bias.detach()


def _bags(part: Sequence[Lesson]) -> tuple[Tensor, Tensor, Tensor]:
    """The features that are left of each lesson, one after the other, where each begins, and their weights."""
    left = [torch.rand(len(each.slots)) > DROPPED for each in part]
    found = [each.slots[stays] for each, stays in zip(part, left, strict=True)]
    weights = [each.weights[stays] / (1 - DROPPED) for each, stays in zip(part, left, strict=True)]
    starts = torch.tensor([0, *(len(each) for each in found[:-1])]).cumsum(0)
    return torch.cat(found), starts, torch.cat(weights)


def learn(told: Sequence[Report], exact: Sequence[Report]) -> Weights:
    given, to, heard, rarity = lessons(told, exact)
    rooms = catalog().specialists
    models = [fitted(given, len(to) + len(rooms), SLOTS + len(heard), seed) for seed in range(MODELS)]
    weights, bias = (torch.stack(parts).mean(0) for parts in zip(*models, strict=True))
    bias += torch.tensor([ELSEWHERE if name.startswith("referral") else 0.0 for name in (*to, *rooms)])
    table = weights[:SLOTS] * rarity[:, None] * SCALE
    unit = float(table.abs().max()) / LOUD
    return Weights(
        to=tuple(to),
        rooms=rooms,
        bias=tuple(round(value, 4) for value in bias.tolist()),
        unit=unit,
        heard={
            name: tuple(round(value * HEARD, 4) for value in weights[SLOTS + at].tolist())
            for at, name in enumerate(heard)
        },
        table=(table / unit).round().to(torch.int8).numpy().tobytes(),
        learned_from=digest([*told, *exact]),
    )


def main() -> int:
    """Writes the weights."""
    told, exact = learned()
    found = learn(told, exact)
    Path(FILE).write_bytes(msgspec.json.encode(found))
    print(
        f"{len(told)} reports and {len(exact)} exact ones, {len(found.to)} answers, {Path(FILE).stat().st_size} bytes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
