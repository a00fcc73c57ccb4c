"""What agents are given."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from inspect_ai.tool import ToolDef

from torchtriage_evals import others, pressure, store
from torchtriage_evals.arms import HELPS, Arms, Context
from torchtriage_evals.legs import legs
from torchtriage_evals.pack import ROUTER, description, digest
from torchtriage_evals.placebo import filler, placebo
from torchtriage_evals.prompt import Given, prompt
from torchtriage_evals.scenario import PRESSURES, Scenario
from torchtriage_evals.source import Source
from torchtriage_evals.trial import Arm


@pytest.fixture
def context(files: dict[str, str], tmp_path: Path) -> Callable[[Arm], Context]:
    def built(arm: Arm) -> Context:
        async def enter() -> Context:
            async with Arms(files).context(arm, tmp_path) as found:
                return found

        return anyio.run(enter)

    return built


def test_without_the_skill_there_is_neither_tool_nor_text(context: Callable[[Arm], Context]) -> None:
    found = context(Arm.RED)
    assert (found.system, found.tools) == (HELPS, [])


def test_with_the_skill_its_router_is_in_the_context(context: Callable[[Arm], Context], files: dict[str, str]) -> None:
    assert files[f"{ROUTER}/SKILL.md"] in context(Arm.GREEN).system


def test_the_placebo_is_as_long_and_about_nothing_of_ours(
    context: Callable[[Arm], Context], files: dict[str, str]
) -> None:
    instead = placebo(files)
    assert [len(text) for text in instead.values()] == [len(text) for text in files.values()]
    assert len(context(Arm.PLACEBO).system) == len(context(Arm.GREEN).system)
    said = " ".join([*instead, *list(instead.values())[:20]]).lower()
    assert not re.search(r"torch|gradient|tensor|training|profil|debug|loss", said)
    assert filler(0) == ""


def test_the_skill_is_offered_among_ten_others(context: Callable[[Arm], Context], files: dict[str, str]) -> None:
    found = context(Arm.OFFERED)
    assert found.system == HELPS
    skill = ToolDef(found.tools[0])
    listed = re.findall(r"^- ([\w-]+): .{40}", skill.description, re.M)
    assert set(others.OTHERS) < set(listed)
    assert ROUTER in listed
    assert listed == sorted(listed)

    async def opened(*names: str) -> list[str]:
        return [str(await skill.tool(name)) for name in names]

    said = anyio.run(opened, "drawing-charts", "nothing", ROUTER)
    assert said[0] == others.sheet("drawing-charts")
    assert said[1].startswith("There is no skill 'nothing'; there are ")
    assert said[2] == files[f"{ROUTER}/SKILL.md"]
    assert found.opened == [ROUTER]


def test_files_of_the_skill_are_opened_by_their_path_or_their_end(
    context: Callable[[Arm], Context], files: dict[str, str]
) -> None:
    opener = ToolDef(context(Arm.GREEN).tools[0]).tool

    async def opened(*paths: str) -> list[str]:
        return [str(await opener(path)) for path in paths]

    sheet = files["performance-profiling/SKILL.md"]
    assert anyio.run(opened, "performance-profiling/SKILL.md", "./performance-profiling") == [sheet, sheet]
    told = anyio.run(opened, "SKILL.md", "../../etc/passwd")
    assert all(each.startswith("There is no file") for each in told)


def test_every_arm_is_asked_in_the_same_words_and_pressure_only_adds(source: Source) -> None:
    asked: dict[tuple[str, str | None], set[str]] = {}
    for leg in legs(source, tuple(Arm), ("all",)):
        asked.setdefault((leg.scenario.id, leg.pressure), set()).add(leg.prompt)
    assert all(len(prompts) == 1 for prompts in asked.values())
    for (name, mood), (text,) in asked.items():
        if mood is not None:
            calm = next(iter(asked[name, None]))
            added = pressure.pressed("", mood).strip()
            assert text.replace(f"\n\n{added}", "", 1) == calm


def test_there_is_a_sentence_for_every_pressure_and_three_at_once_have_three() -> None:
    said = {kind: pressure.pressed("q", kind) for kind in PRESSURES}
    assert len(set(said.values())) == len(PRESSURES)
    assert all(pressure.SAID[kind] in said["three"] for kind in pressure.THREE)
    assert pressure.pressed("q", None) == "q"


def test_a_run_without_a_choice_puts_one_pressure_of_its_own_on_each_scenario(source: Source) -> None:
    chosen = {one.id: pressure.chosen(one, ()) for one in source.scenarios}
    assert all(len(each) == 1 for each in chosen.values())
    assert len(set(chosen.values())) > 2
    calm_only = Scenario("x", "x", "scope", "q", refer_to="theory", pressures=())
    assert pressure.chosen(calm_only, ()) == ()


def test_a_program_with_a_bug_and_a_sound_one_are_asked_about_alike(every: Source) -> None:
    broken, sound = (next(one for one in every.scenarios if one.id == name) for name in ("layers", "sound"))
    first, second = every.given(broken), every.given(sound)
    assert first is not None
    assert second is not None
    assert first.text != second.text
    assert prompt(broken, None, first) == prompt(sound, None, first)


def test_a_file_with_fences_is_fenced_by_more() -> None:
    one = Scenario("x", "x", "scope", "q", refer_to="theory")
    assert "\n````\n```py" in prompt(one, None, Given("a.md", "```py\nx\n"))


def test_hashes_change_with_every_file_and_scenario(files: dict[str, str], source: Source) -> None:
    name = next(iter(files))
    assert digest(files) != digest(files | {name: files[name] + " "})
    assert source.digest != source.chosen((), 5).digest
    assert source.digest == source.chosen((), None).digest


def test_a_limit_takes_of_each_kind_its_share(source: Source) -> None:
    assert len({one.kind for one in source.chosen((), 7).scenarios}) == 7
    assert {one.kind for one in source.chosen(("route",), None).scenarios} == {"route"}
    whole = Source(store.scenarios())
    few, every = (Counter(one.kind for one in each.scenarios) for each in (whole.chosen((), 60), whole))
    assert all(abs(few[kind] - 60 * number / every.total()) < 1 for kind, number in every.items())


def test_the_description_of_a_skill_is_read_from_its_head(files: dict[str, str]) -> None:
    assert "PyTorch" in description(files[f"{ROUTER}/SKILL.md"])
    assert description("no head") == ""
