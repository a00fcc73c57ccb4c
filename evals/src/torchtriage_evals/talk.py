"""An agent at work on one query: it answers, or calls tools until it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspect_ai.model import ChatMessage, ChatMessageAssistant, execute_tools
from msgspec import Struct

from torchtriage_evals.arms import Context
from torchtriage_evals.ledger import Ledger
from torchtriage_evals.trial import Spent

if TYPE_CHECKING:
    from inspect_ai.model import Model

TURNS = 16
TOO_LONG = f"no answer in {TURNS} turns"


class Talk(Struct, frozen=True):
    """What came of it: the answer, the tools that were called, tokens, and why it was cut short, if it was."""

    answer: str
    calls: tuple[str, ...]
    spent: Spent
    stopped: str


async def talk(model: Model, messages: list[ChatMessage], context: Context, ledger: Ledger) -> Talk:
    """Lets MODEL work until it calls no tool; MESSAGES grow by what is said. Raises LimitReached."""
    spent, calls = Spent(), list[str]()
    for _ in range(TURNS):
        ledger.check()
        output = await model.generate(messages, tools=context.tools)
        spent += ledger.add(str(model), output.usage)
        messages.append(output.message)
        if not output.message.tool_calls:
            return Talk(output.completion, tuple(calls), spent, "")
        calls += [call.function for call in output.message.tool_calls]
        messages += (await execute_tools(messages, context.tools)).messages
    last = next((each.text for each in reversed(messages) if isinstance(each, ChatMessageAssistant)), "")
    return Talk(last, tuple(calls), spent, TOO_LONG)
