"""What a training is set up by: arguments of the command line, and objects that hold settings."""

from __future__ import annotations

import ast

from torchtriage.examine.source.execution.python import Python
from torchtriage.examine.source.execution.values import (
    Arguments,
    Class,
    External,
    Keywords,
    Namespace,
    Object,
    Unknown,
    Value,
)

_FLAGS = {"store_true": False, "store_false": True, "count": 0}
_SAME = frozenset({"clone", "copy", "deepcopy", "freeze", "defrost", "lock", "unlock"})
"""Methods of settings that give, or leave, the same settings."""


class Configuration(Python):
    """Settings are what the program says by default: no option is given, and no file of settings is read."""

    def _parser(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Object("parser", state={"options": {}, "records": []})

    def parser_method(self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """HELD.NAME(…) of an argument parser."""
        if name == "add_argument":
            self._add_argument(held, arguments, keywords)
            return None
        if name in ("add_argument_group", "add_mutually_exclusive_group"):
            return held
        if name == "set_defaults":
            held.state["options"] |= keywords
            return None
        if name in ("parse_args_into_dataclasses", "parse"):
            return tuple(held.state["records"])
        if name in ("parse_args", "parse_known_args"):
            options = Namespace("arguments", dict(held.state["options"]), is_open=True)
            return options if name == "parse_args" else (options, [])
        return Unknown(name)

    def _add_argument(self, held: Object, arguments: Arguments, keywords: Keywords) -> None:
        names = [each for each in arguments if isinstance(each, str)]
        if not names:
            return
        long = next((each for each in names if each.startswith("--")), names[0])
        name = keywords.get("dest") or long.lstrip("-").replace("-", "_")
        action = keywords.get("action", "")
        if "default" in keywords:
            value = keywords["default"]
            kind = keywords.get("type")
            if isinstance(value, str) and isinstance(kind, External) and kind.name.startswith("builtins."):
                value = self.python(kind.name, (value,), {}, ast.Pass())
        else:
            value = _FLAGS.get(action) if isinstance(action, str) else None
        value = optional(name, value)
        if name in ("local_rank", "rank"):  # what torch.distributed.launch gave each process
            value = Unknown(f"--{name}", is_of_rank=True)
        held.state["options"][name] = value

    def _record(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Namespace("record", dict(keywords), is_open="**" in keywords)

    def _settings(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """An object whose entries are attributes, too: of yacs, OmegaConf, ml_collections …"""
        first = arguments[0] if arguments else {}
        if isinstance(first, Class | Object):  # OmegaConf.structured(Config)
            return self.call(first, (), {}, node) if isinstance(first, Class) else first
        if isinstance(first, Namespace):
            return first
        if not isinstance(first, dict):
            return Unknown("settings")
        pairs = {**first, **keywords}.items()
        values = {str(name): optional(str(name), self._nested_settings(each, node)) for name, each in pairs}
        return Namespace("settings", values, is_open=True, holds_settings=True)

    def _nested_settings(self, value: Value, node: ast.AST) -> Value:
        return self._settings((value,), {}, node) if isinstance(value, dict) else value

    def settings_method(self, held: Namespace, name: str, arguments: Arguments, keywords: Keywords) -> Value:
        """HELD.NAME(…) of an object that holds settings."""
        if name in _SAME:
            return held
        key = next(iter(arguments), None)
        if name in ("get", "pop", "setdefault") and isinstance(key, str):
            default = arguments[1] if len(arguments) > 1 else keywords.get("default", Unknown(key))
            return held.values.get(key, default)
        if name in ("items", "keys", "values"):
            return [*getattr(held.values, name)()]
        return Unknown(name)

    def _of_command_line(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """tyro.cli(Config): an instance of it as it is without options."""
        first = arguments[0] if arguments else Unknown()
        return self.call(first, (), {}, node) if isinstance(first, Class) else Unknown("options")

    def _record_parser(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """transformers.HfArgumentParser((First, Second))."""
        first = arguments[0] if arguments else ()
        kinds = first if isinstance(first, list | tuple) else (first,)
        made = [self.call(each, (), {}, node) if isinstance(each, Class) else Unknown("options") for each in kinds]
        return Object("parser", state={"options": {}, "records": made})


def optional(name: str, value: Value) -> Value:
    """The setting NAME with its default VALUE: what is off, or not there, may be asked for."""
    is_off = value is False or value is None or value == ""
    return Unknown(f"--{name}", is_option=True) if is_off else value


Configuration._works_of = {
    **Python._works_of,
    "argparse.ArgumentParser": Configuration._parser,
    "types.SimpleNamespace": Configuration._record,
    "argparse.Namespace": Configuration._record,
    **dict.fromkeys(
        (
            "yacs.config.CfgNode",
            "fvcore.common.config.CfgNode",
            "ml_collections.ConfigDict",
            "ml_collections.config_dict.ConfigDict",
            "easydict.EasyDict",
            "addict.Dict",
            "munch.Munch",
            "omegaconf.OmegaConf.create",
            "omegaconf.OmegaConf.structured",
            "omegaconf.DictConfig",
        ),
        Configuration._settings,
    ),
    "omegaconf.OmegaConf.merge": lambda self, arguments, keywords, node: self._settings(arguments[:1], {}, node),
    "omegaconf.OmegaConf.to_container": lambda self, arguments, keywords, node: arguments[0] if arguments else None,
    **dict.fromkeys(("tyro.cli", "simple_parsing.parse", "draccus.parse"), Configuration._of_command_line),
    "transformers.HfArgumentParser": Configuration._record_parser,
}
