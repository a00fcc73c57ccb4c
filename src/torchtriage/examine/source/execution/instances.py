"""Instances of the classes of the project: how they are made, and the fields of data classes."""

from __future__ import annotations

import ast
import re

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd_functions import AutogradFunctions
from torchtriage.examine.source.execution.configuration import optional
from torchtriage.examine.source.execution.lore import FUNCTION, kind_of, lore
from torchtriage.examine.source.execution.values import (
    Arguments,
    Class,
    Function,
    Keywords,
    Loaded,
    Object,
    Spot,
    Unknown,
    Value,
    is_concrete,
)

_SETTINGS = re.compile(r"(Config|Cfg|Args|Arguments|Options|Opts?|Settings|Params|Hparams|Flags)$", re.IGNORECASE)
_OWN_WAYS = ("__new__", "__setattr__", "__getattr__", "__init_subclass__")
"""Methods of a class that may do what a constructor is for."""


class Instances(AutogradFunctions):
    """What calling a class of the project gives."""

    steps: int

    def call_function(self, function: Function, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """FUNCTION(ARGUMENTS, KEYWORDS)."""
        raise NotImplementedError

    def instance(self, cls: Class, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """CLS(ARGUMENTS, KEYWORDS), made at NODE."""
        kinds = [kind_of(name) for name in cls.externals]
        kind = next((each for each in kinds if each), "")
        external = next((name for name in cls.externals if kind_of(name)), "")
        made = Object(kind, external, cls, self.spot(node), arguments, keywords, state={"born": self.steps})
        if not cls.is_known or any(map(is_foreign, cls.externals)):
            made.has_escaped = True
        if cls.fields is not None:
            self._fill(made, cls, arguments, keywords, node)
        members = [each for each in cls.namespace.values() if isinstance(each, Object) and each.cls is cls]
        if members and len(arguments) == 1:  # Precision("bf16")
            mine = (each for each in members if is_concrete(arguments[0]) and each.values.get("value") == arguments[0])
            return next(mine, Unknown(cls.name))
        if arguments and FUNCTION in cls.externals and not any(map(cls.has, ("__init__", "__call__", "__new__"))):
            self.happen(events.FunctionInstance(self.spot(node), cls))
        first, late = cls.method("__init__"), cls.method("__post_init__")
        made.state["is_made"] = True if first is None else None if any(map(cls.has, _OWN_WAYS)) else False
        if first is not None:
            self.call_function(first, (made, *arguments), keywords, node)
            if kind == "module" and made.values and cls.has("forward"):
                self.note_early(made, "", Spot(first.frame.file.path, first.node))
        elif kind == "optimizer":
            self.make_optimizer(made, node)
        elif kind == "module" and external in lore()["containers"]:
            made.state |= self.make_module(external, arguments, keywords, node).state
        if cls.fields is not None and late is not None:
            self.call_function(late, (made,), {}, node)
        return made

    def _fill(self, made: Object, cls: Class, arguments: Arguments, keywords: Keywords, node: ast.AST) -> None:
        """The fields of a data class."""
        holds_settings = _SETTINGS.search(cls.name) is not None
        loaded = keywords.get("**")
        for place, name in enumerate(cls.fields or ()):
            if name in keywords:
                value = keywords[name]
            elif isinstance(loaded, Loaded):  # Progress(**state["progress"])
                value = self.item(loaded, name, node)
            elif place < len(arguments):
                value = arguments[place]
            else:
                value = cls.get(name, Unknown(name))
                if isinstance(value, Object) and value.kind == "field":
                    maker = value.keywords.get("default_factory")
                    value = (
                        value.keywords.get("default", Unknown(name))
                        if maker is None
                        else self.call(maker, (), {}, node)
                    )
            is_given = name in keywords or place < len(arguments)
            made.values[name] = optional(name, value) if holds_settings and not is_given else value


def is_foreign(name: str) -> bool:
    """Whether NAME, a class of a package that is inherited from, may do anything."""
    package = name.partition(".")[0]
    return not kind_of(name) and package not in ("torch", *lore()["harmless"]["packages"])
