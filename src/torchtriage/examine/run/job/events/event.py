"""An event, and the row of a file that it becomes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):  # for type checkers alone: a dataclass for each kind costs a job's start 30 ms
        return lambda kind: kind


E = TypeVar("E", bound="Event")
Where = tuple[str, int]  # file and line
Further = Sequence[Any]  # other places of one sighting: (what is there, path, line) of each
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass_transform(kw_only_default=True)
class Fields:
    """What declares its fields as a dataclass does; all are named when one is made."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class Event(Fields):
    """Something that happened in a job, at a step.

    A field whose name is a word of Python's ends with an underscore, which JSON has not. Of a line that lacks a field
    the default holds; where there is none, reading the field raises AttributeError.

    has_time: whether its line may wait a quarter of a second for others, as figures may that come in many steps.
    """

    kind: ClassVar[str]
    has_time: ClassVar[bool] = False
    aliases: ClassVar[dict[str, str]] = {}  # by the name of a member that is a word of Python's
    step: int = 0  # in which it happened; filled in when the job records it

    def __init_subclass__(cls) -> None:
        if "kind" not in vars(cls):
            cls.kind = _WORDS.sub("-", cls.__name__).lower()
        own = {name[:-1]: name for name in vars(cls).get("__annotations__", ()) if name.endswith("_")}
        cls.aliases = {**cls.aliases, **own}


def from_row(kind: type[E], row: Mapping[str, Any]) -> E:
    """The event of that KIND that ROW, an object of JSON, tells; null stands for a field's default."""
    event = kind()
    fields = {kind.aliases.get(name, name): value for name, value in row.items() if name != "kind"}
    vars(event).update({name: value for name, value in fields.items() if value is not None or not hasattr(kind, name)})
    return event


def to_row(event: Event) -> dict[str, Any]:
    """The members of the JSON object that EVENT becomes."""
    fields = {name.rstrip("_"): value for name, value in vars(event).items()}
    return {"kind": event.kind, **fields}


def replace(event: E, **fields: Any) -> E:
    """EVENT with other FIELDS."""
    changed = type(event)()
    vars(changed).update(vars(event), **fields)
    return changed
