"""Agents and judges without a model: they try every arm and scorer, offline, and tell nothing about a skill.

Their answers carry their usage: without it Inspect counts tokens with a table that it downloads.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

from torchtriage import TriageError
from torchtriage_evals.judge import LONGEST
from torchtriage_evals.labelled import Labelled
from torchtriage_evals.pack import ROUTER
from torchtriage_evals.scenario import SPECIALISTS, Scenario

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, ModelOutput
    from inspect_ai.tool import ToolInfo

    from torchtriage_evals.legs import Leg

Script: TypeAlias = Callable[..., "ModelOutput"]
WITHOUT, WITH = 0.3, 0.6  # how often the weak agent is right
AGENTS = {
    "perfect": "knows every answer, and uses what it is offered",
    "aloof": "knows every answer, and uses no tool",
    "empty": "says nothing",
    "harmful": "makes every harmful point, and mends what is sound",
    "weak": f"is right {WITHOUT:.0%} of the time, {WITH:.0%} with the skill",
}
JUDGES = {
    "judge": "finds a point whose words stand in the answer, and knows the labelled answers",
    "yes": "says yes to everything, and quotes how the answer begins",
    "babble": "says nothing that can be read",
}
_BETWEEN = re.compile(r"BEGIN (ANSWER|POINT)\n(.*?)\nEND \1", re.S)


def agent(name: str, legs: tuple[Leg, ...]) -> Script:
    """The agent NAME, who knows the LEGS by their prompts."""
    _known(name, AGENTS)
    known = {leg.prompt: leg.scenario for leg in legs}
    given = {leg.prompt: leg.given.text if leg.given else "" for leg in legs}
    asked: Counter[tuple[str, ...]] = Counter()

    def script(messages: list[ChatMessage], tools: list[ToolInfo], *_: Any) -> ModelOutput:
        prompt = next(each.text for each in messages if each.role == "user")
        scenario = known[prompt]
        call = None if name in ("aloof", "empty") else _call(scenario, messages, [tool.name for tool in tools])
        if call:
            return _output(messages, call=call)
        skilled = any(tool.name == "ask" for tool in tools) or any(ROUTER in m.text for m in messages)
        arm = (prompt, messages[0].text, *(tool.name for tool in tools))
        asked[arm] += 1
        lucky = _luck(f"{prompt}|{skilled}|{asked[arm]}") < (WITH if skilled else WITHOUT)
        return _output(messages, _answer(name, scenario, given[prompt], lucky=lucky))

    return script


def judge(name: str, labelled: tuple[Labelled, ...]) -> Script:
    """The judge NAME."""
    _known(name, JUDGES)
    labels = {(_plain(each.point), _plain(each.answer)): each.made for each in labelled}

    def script(messages: list[ChatMessage], *_: Any) -> ModelOutput:
        parts = dict(_BETWEEN.findall(messages[-1].text))
        point, answer = _plain(parts["POINT"]), _plain(parts["ANSWER"])
        if name == "babble":
            return _output(messages, "That depends on how one sees it.")
        known = labels.get((point, answer))
        made = name == "yes" or (known if known is not None else point in answer)
        quote = (point if name != "yes" and point in answer else answer)[:LONGEST].strip() if made else ""
        return _output(messages, json.dumps({"made": made, "quote": quote}))

    return script


def _known(name: str, among: dict[str, str]) -> None:
    if name not in among:
        there = ", ".join(f"mockllm/{each}" for each in among)
        raise TriageError("there is no such script", f"mockllm/{name}", f"There are {there}.")


def _plain(text: str) -> str:
    return " ".join(text.split())


def _luck(text: str) -> float:
    return crc32(text.encode()) / 2**32


def _call(scenario: Scenario, messages: list[ChatMessage], tools: list[str]) -> tuple[str, dict[str, str]] | None:
    """The tool that is called next, each once: the skill where it belongs, then a file, then torchtriage."""
    done = {call.function for each in messages if each.role == "assistant" for call in each.tool_calls or ()}
    wanted: dict[str, dict[str, str]] = {"ask": {"text": scenario.query}}
    if "open_skill" not in tools:
        wanted["open_file"] = {"path": SPECIALISTS[4]}
    elif belongs(scenario):
        wanted["open_skill"] = {"name": ROUTER}
    return next(((name, args) for name, args in wanted.items() if name in tools and name not in done), None)


def belongs(scenario: Scenario) -> bool:
    """Whether the skill has to be opened."""
    return scenario.kind != "scope" if scenario.triggers is None else scenario.triggers


def _answer(name: str, scenario: Scenario, given: str, *, lucky: bool) -> str:
    if name == "empty" or (name == "weak" and not lucky):
        return "" if name == "empty" else "I am not sure."
    return harmful(scenario, given) if name == "harmful" else perfect(scenario)


def perfect(scenario: Scenario) -> str:
    """An answer that makes every good point and no other."""
    said = [point.text for point in scenario.points if not point.harmful]
    if scenario.program:
        said += (
            ["VERDICT: sound"] if scenario.kind == "healthy" else [_fenced("diff", _patch(scenario)), "VERDICT: faulty"]
        )
    if scenario.cause:
        said.append(f"CAUSE: {scenario.cause}")
    if scenario.route or scenario.question:
        said.append(f"ROUTE: {', '.join(scenario.route) or 'question'}")
    if scenario.refer_to:
        said.append(f"ROUTE: elsewhere {scenario.refer_to}")
    return "\n\n".join(said) or "Yes."


def harmful(scenario: Scenario, given: str) -> str:
    """An answer that makes every harmful point, and mends what is sound."""
    said = [point.text for point in scenario.points if point.harmful]
    if scenario.program:
        said += [_fenced("python", f"{given}\nNEEDLESS = True\n"), "VERDICT: faulty"]
    return "\n\n".join(said) or "Just try something."


def _patch(scenario: Scenario) -> str:
    from torchtriage_evals.programs.program import program

    return program(scenario.program).patch


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}```"


def _output(messages: list[ChatMessage], text: str = "", call: tuple[str, dict[str, str]] | None = None) -> ModelOutput:
    from inspect_ai.model import ModelOutput, ModelUsage

    output = ModelOutput.for_tool_call("mockllm", *call) if call else ModelOutput.from_content("mockllm", text)
    read, written = sum(len(each.text) for each in messages) // 4, max(1, len(text) // 4)
    output.usage = ModelUsage(input_tokens=read, output_tokens=written, total_tokens=read + written)
    return output
