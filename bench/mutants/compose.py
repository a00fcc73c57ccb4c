"""Faults in another place than their effect: split over two files, or behind a setting."""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import dataclass

from mutants.source import Edit, Project, Site, Source, applied, fault_lines

HELPERS = ("helpers.py", "support.py", "common.py")
SETTINGS = ("run_settings.py", "defaults.py", "switches.py")
FORBIDDEN = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Break, ast.Continue, ast.NamedExpr, ast.Global,
             ast.Nonlocal, ast.Starred)  # fmt: skip


@dataclass(frozen=True)
class Composed:
    """The files with the fault, and its lines in them."""

    texts: dict[str, str]
    lines: dict[str, list[int]]


def free_name(project: Project, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name not in project.texts), None)


def split(project: Project, site: Site, operator: str) -> Composed | None:
    """The statement with the fault, or that beside an omission, moves into a function of another file.

    None where it cannot: several files, a statement that leaves its block, or names of the file's own.
    """
    del operator
    file = _only_file(site)
    name = free_name(project, HELPERS)
    if file is None or name is None:
        return None
    texts = applied(project.texts, site.changes)
    lines = fault_lines(texts, Site(site.edits, (), site.aids))[file]
    source = Source(file, texts[file])
    statement = _on(source, lines)
    value = _movable(statement)
    if value is None or (site.around and not isinstance(statement, ast.Expr)):
        return None  # beside an omission it is the calls that belong to what is missing, not any statement
    return _moved(source, texts, value, name, site)


def _only_file(site: Site) -> str | None:
    files = {edit.file for edit in site.changes}
    return files.pop() if len(files) == 1 else None


def _on(source: Source, lines: list[int]) -> ast.stmt | None:
    """The simple statement in a function that lies on the first of LINES."""
    for node in source.walk(ast.stmt):
        last = node.end_lineno or node.lineno
        if isinstance(node, ast.Assign | ast.Expr) and node.lineno <= lines[0] <= last and source.function(node):
            return node
    return None


def _movable(statement: ast.stmt | None) -> ast.expr | None:
    """What of a statement can be a function's result: all of a call, the right side of an assignment."""
    if not isinstance(statement, ast.Assign | ast.Expr) or any(isinstance(n, FORBIDDEN) for n in ast.walk(statement)):
        return None
    value = statement.value
    names = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(value)}
    return (
        value
        if not names & {"super", "add_argument"} and isinstance(value, ast.Call | ast.BinOp | ast.List | ast.ListComp)
        else None
    )


def _moved(source: Source, texts: dict[str, str], value: ast.expr, helper: str, site: Site) -> Composed | None:
    imports = {(alias.asname or alias.name).split(".")[0]: source.code(node) for node in source.tree.body
               if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}  # fmt: skip
    bound = {node.id for node in ast.walk(value) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(value) if isinstance(node, ast.arg)}
    names = dict.fromkeys(node.id for node in source.walk(ast.Name, value) if node.id not in bound)
    taken = [name for name in names if name not in imports and not hasattr(builtins, name)]
    own = {node.name for node in source.tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    own |= {each.id for node in source.tree.body if isinstance(node, ast.Assign) for each in ast.walk(node)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}  # fmt: skip
    locals_of_project = {file.removesuffix(".py").split("/")[0] for file in texts}
    needed = dict.fromkeys(imports[name] for name in names if name in imports)
    if own & set(taken) or any(_is_of_project(each, locals_of_project) for each in needed) or "__class__" in names:
        return None
    title = _title(source, value)
    body = re.sub(r"\bself\b", "owner", source.code(value))
    parameters = ", ".join("owner" if name == "self" else name for name in taken)
    head = "\n".join(needed) + "\n\n\n" if needed else ""
    text = f'"""What several files of this program use."""\n\n{head}def {title}({parameters}):\n    return {body}\n'
    call = f"{title}({', '.join(taken)})"
    edited = source.replace(value, call) + source.imported(f"from {helper.removesuffix('.py')} import {title}")
    found = {**applied(texts, edited.changes), helper: text}
    first = text.count("\n", 0, text.index("    return ")) + 1
    lines = fault_lines(found, edited)
    if site.around:  # an omission may be pointed at wherever it could be pointed at before
        lines[source.name] = sorted(set(lines[source.name]) | set(_shifted(texts, site, source.name)))
    return Composed(found, {**lines, helper: list(range(first, text.count("\n") + 1))})


def _shifted(texts: dict[str, str], site: Site, file: str) -> list[int]:
    """The lines of the plain mutant, after the one import above them."""
    return [line + shift for line in fault_lines(texts, site)[file] for shift in (0, 1)]


def _is_of_project(statement: str, names: set[str]) -> bool:
    found = re.match(r"(?:from|import)\s+(\.*)(\w*)", statement)
    return found is None or bool(found[1]) or found[2] in names


def _title(source: Source, value: ast.expr) -> str:
    """A name for the function that VALUE becomes: that of the call, or what it is assigned to."""
    statement = source.statement(value)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    called = value.func if isinstance(value, ast.Call) else target
    name = getattr(called, "attr", None) or getattr(called, "id", None) or "value"
    return f"apply_{name.strip('_').lower()}"


def configure(project: Project, site: Site, operator: str) -> Composed | None:
    """The fault is there because a setting in another file says so: a number, or a switch.

    None where the edits are of several statements or files.
    """
    file, name = _only_file(site), free_name(project, SETTINGS)
    if file is None or name is None or len(site.edits) != 1 or site.aids:
        return None
    edit, source = site.edits[0], project[file]
    module = name.removesuffix(".py")
    if re.fullmatch(r"-?[\d.]+(e-?\d+)?", edit.text) and _in_function(source, edit):
        field, default = operator.split("-")[0], edit.text
        replaced, kind = f"SETTINGS.{field}_value", "float" if re.search(r"[.e]", default) else "int"
        return _set(
            project, source, Edit(file, edit.start, edit.end, replaced), (module, f"{field}_value", kind, default), site
        )
    statement = _whole_statement(source, edit)
    if statement is None:
        return None
    old = source.dedented(statement)
    inside = source.indent(statement)
    if not edit.text.strip():
        text = f"if SETTINGS.full_step:\n{inside}    {old}".replace("\n", "\n")
        field, default = "full_step", "False"
    else:
        span = source.span(statement)
        new = source.text[span.start : edit.start] + edit.text + source.text[edit.end : span.end]
        if "\n" in new or "\n" in old:
            return None
        text = f"if SETTINGS.fast_path:\n{inside}    {new}\n{inside}else:\n{inside}    {old}"
        field, default = "fast_path", "True"
    span = source.span(statement)
    return _set(project, source, Edit(file, span.start, span.end, text), (module, field, "bool", default), site)


def _in_function(source: Source, edit: Edit) -> bool:
    """Whether an edit lies in code that runs after the imports of its file, where any name is known."""
    around = [node for node in source.walk(ast.FunctionDef)
              if node.body and source.span(node.body[0]).start <= edit.start < source.span(node).end]  # fmt: skip
    return bool(around)


def _whole_statement(source: Source, edit: Edit) -> ast.Assign | ast.Expr | None:
    """The simple statement, on one line and in a function, that holds the whole edit."""
    for node in source.walk(ast.stmt):
        span = source.whole_lines(node)
        is_around = span.start <= edit.start < edit.end <= span.end and node.lineno == node.end_lineno
        if isinstance(node, ast.Assign | ast.Expr) and is_around and source.function(node):
            return node
    return None


SETTINGS_FILE = '''"""How the program runs where the command line says nothing."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    verbose: bool = False
    {field}: {kind} = {default}


SETTINGS = Settings()
'''


def _set(
    project: Project, source: Source, edit: Edit, setting: tuple[str, str, str, str], site: Site
) -> Composed | None:
    module, field, kind, default = setting
    text = SETTINGS_FILE.format(field=field, kind=kind, default=default)
    changed = Site((edit,), site.around, source.imported(f"from {module} import SETTINGS").aids)
    texts = {**applied(project.texts, changed.changes), f"{module}.py": text}
    lines = fault_lines(texts, changed)
    lines[f"{module}.py"] = [text.count("\n", 0, text.index(f"    {field}:")) + 1]
    return Composed(texts, lines)
