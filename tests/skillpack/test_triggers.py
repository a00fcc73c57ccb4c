"""Which skill an utterance opens: by the router, and by a retriever that has nothing but the descriptions."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from torchtriage.core.plan import Plan
from torchtriage.interface.skillpack.pack import ROUTER, skills
from torchtriage.interface.skillpack.valid import head
from torchtriage.triage import ask

SAID = tomllib.loads(Path(__file__).with_name("triggers.toml").read_text())["utterance"]
MEANT = [each for each in SAID if each["skill"]]
RIGHT = 0.75  # of the utterances, at least, by descriptions alone
NEAR = 0.1  # of them, at most, open the skill that they must not
COMMON = re.compile(
    r"\b(a|an|and|are|as|at|by|do|does|for|from|have|how|i|in|is|it|my|no|not|of|on|or|should|that|the|this|to|too|use"
    r"|what|when|which|with)\b"
)


def words(text: str) -> Counter[str]:
    found = re.findall(r"[a-z0-9_]+", COMMON.sub(" ", text.lower()))
    return Counter(re.sub(r"(ing|ed|s)$", "", word) or word for word in found)


def described() -> dict[str, Counter[str]]:
    """The descriptions' words; what a description says that it is not for is left out."""
    texts = {name: (folder / "SKILL.md").read_text(encoding="utf-8") for name, folder in skills().items()}
    return {
        name: words(re.split(r"\bNot for\b", head(text)["description"])[0])
        for name, text in texts.items()
        if name != ROUTER
    }


def chosen(said: str, known: dict[str, Counter[str]]) -> str:
    """The skill whose description shares most with SAID: words that few descriptions have count for more."""
    spread = Counter(word for each in known.values() for word in each)
    asked = words(said)

    def score(each: Counter[str]) -> float:
        shared = sum(math.log(1 + len(known) / spread[word]) for word in asked if word in each)
        return shared / math.sqrt(1 + len(each))

    return max(known, key=lambda name: score(known[name]))


@pytest.mark.parametrize("each", SAID, ids=lambda each: each["says"])
def test_the_router_opens_the_skill_that_is_meant(each: dict[str, str]) -> None:
    route = ask(each["says"])
    assert (route.steps[0].specialist if isinstance(route, Plan) else "") == each["skill"]


def test_descriptions_alone_open_the_right_skill_and_seldom_the_near_one() -> None:
    known = described()
    opened = {each["says"]: chosen(each["says"], known) for each in MEANT}
    right = [each for each in MEANT if opened[each["says"]] == each["skill"]]
    near = [each["says"] for each in MEANT if opened[each["says"]] == each["not"]]
    assert len(right) >= RIGHT * len(MEANT), [each["says"] for each in MEANT if each not in right]
    assert len(near) <= NEAR * len(MEANT), near


def test_the_set_speaks_of_every_skill_and_of_what_is_none_of_them() -> None:
    counts = Counter(each["skill"] for each in SAID)
    assert len(SAID) >= 60
    assert set(counts) == {*skills(), ""} - {ROUTER}
    assert min(counts.values()) >= 7
