"""Whether any program makes a rule fail: generated syntax, and training code whose parts were exchanged.

    python bench/fuzz.py [PROGRAMS] [SEED]

Half of the programs come from hypothesmith (where it is installed), half are the cases under tests/cases with up to
twelve expressions, statements or names put in the place of others. Every rule looks at each of them.
"""

from __future__ import annotations

import ast
import copy
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torchtriage.examine.source.seen import look
from torchtriage.triage import detectors

CASES = Path(__file__).parent.parent / "tests/cases"
PROGRAMS, SEED, CHANGES = 10_000, 20_260_101, 12
HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


def trees() -> list[ast.Module]:
    return [ast.parse(path.read_bytes()) for path in sorted(CASES.rglob("*.py"))]


def exchanged(known: list[ast.Module], chance: random.Random) -> str:
    """One of KNOWN with parts of any of them in the place of others; valid syntax, whatever it means."""
    tree = copy.deepcopy(chance.choice(known))
    for _ in range(chance.randint(1, CHANGES)):
        _exchange(tree, chance.choice(known), chance)
    return ast.unparse(ast.fix_missing_locations(tree))


def _exchange(tree: ast.Module, other: ast.Module, chance: random.Random) -> None:
    kind = chance.choice((ast.expr, ast.expr, ast.stmt))
    places = [
        (node, name, index)
        for node in ast.walk(tree)
        for name, value in ast.iter_fields(node)
        for index, item in enumerate(value if isinstance(value, list) else [value])
        if isinstance(item, kind) and isinstance(getattr(item, "ctx", ast.Load()), ast.Load)
    ]
    parts = [
        node
        for node in ast.walk(other)
        if isinstance(node, kind) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    ]
    if not places or not parts:
        return
    node, name, index = chance.choice(places)
    part = copy.deepcopy(chance.choice(parts))
    value = getattr(node, name)
    if isinstance(value, list):
        value[index] = part
    else:
        setattr(node, name, part)


def generated(count: int, seed: int) -> Iterator[str]:
    """COUNT programs from hypothesmith."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    hypothesmith: Any = import_module("hypothesmith")
    found: list[str] = []

    @seeded(seed)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(hypothesmith.from_node())
    def collect(text: str) -> None:
        found.append(text)

    collect()
    yield from (HEAD + text for text in found[:count])


def programs(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Where each program comes from, and its text."""
    has_generator = find_spec("hypothesmith") is not None
    if has_generator:
        yield from (("hypothesmith", text) for text in generated(count // 2, seed))
    known, chance = trees(), random.Random(seed)  # noqa: S311 - no secret
    for _ in range(count - (count // 2 if has_generator else 0)):
        try:
            yield "exchanged", exchanged(known, chance)
        except (ValueError, TypeError, AttributeError, RecursionError):
            continue  # ast.unparse knows no text for some trees


def main() -> None:
    count, seed = (int(word) for word in [*sys.argv[1:], *map(str, (PROGRAMS, SEED)[len(sys.argv) - 1 :])])
    rules = tuple(detectors("rules"))
    ends: Counter[tuple[str, str]] = Counter()
    failed: dict[tuple[str, str], list[str]] = {}
    """The programs that make a rule fail, by the rule and the kind of error."""
    start = time.process_time()
    for origin, text in programs(count, seed):
        try:
            seen = look("fuzz.py", text.encode("utf-8", "replace"), rules)
        except Exception as error:  # noqa: BLE001 - counted: this is what is looked for
            failed.setdefault(("the examination", type(error).__name__), []).append(text)
            continue
        for each in seen.inconclusive:
            if "the detector failed" in each.why:
                error_kind = each.why.partition("failed: ")[2].partition("(")[0]
                failed.setdefault((each.detector, error_kind), []).append(text)
        ends[origin, "examined" if seen.is_read else "inconclusive"] += 1
    for (origin, end), number in sorted(ends.items()):
        print(f"{origin:14} {number:6} {end}")
    number = sum(map(len, failed.values()))
    print(f"{number} failed, {len(rules)} rules, {time.process_time() - start:.0f} CPU seconds, seed {seed}")
    for (name, kind), texts in failed.items():
        print(f"\n{name}: {kind}, {len(texts)} times, as in\n\n{min(texts, key=len)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
