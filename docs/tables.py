"""The generated parts of the documentation, printed by the cog blocks in README.md and docs/."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections import Counter
from contextlib import chdir
from pathlib import Path

os.environ.update(NO_COLOR="1", COLUMNS="100")

import shown

from torchtriage.catalog.load import catalog
from torchtriage.catalog.walk import pages
from torchtriage.core.fault import Basis

TOP = Path(__file__).parent.parent


def say(text: str = "") -> None:
    """One line into the page."""
    sys.stdout.write(f"{text}\n")


def faults() -> None:
    """The index of all faults: one row each, linked to its page."""
    say("| fault | specialist | class | seen in | severity | proof |")
    say("|---|---|---|---|---|---|")
    where = pages()
    for slug, fault in sorted(catalog().faults.items()):
        seen = ", ".join(sorted({sign.detector.partition("/")[0] for sign in fault.signs}))
        page = os.path.relpath(where[slug], TOP / "docs")
        say(
            f"| [{slug}]({page}): {fault.title} | {fault.specialist} | {fault.kind.value} | {seen} "
            f"| {fault.severity.value} | {fault.proof if fault.proven_on else f'none: {fault.proof}'} |"
        )


def readings() -> None:
    """On what the readings of a run and its log have been shown."""
    say("| reading | shows | on |")
    say("|---|---|---|")
    for detector, (slugs, bases) in shown.readings().items():
        named = ", ".join(basis.value for basis in Basis if basis in bases)
        say(f"| `{detector}` | {', '.join(sorted(slugs))} | {named or '–'} |")


def wild() -> None:
    """Bugs in released code."""
    say("| project | where | fault | what it does |")
    say("|---|---|---|---|")
    where = pages()
    for row in tomllib.loads((TOP / "docs/wild.toml").read_text(encoding="utf-8"))["bug"]:
        page = os.path.relpath(where[row["fault"]], TOP / "docs")
        where_it_is = f"{row['project']} {row['version']} | {row['path']}:{row['line']}"
        say(f"| {where_it_is} | [{row['fault']}]({page}) | {row['what']} |")


def published() -> None:
    """Of what was said of public repositories, how much is true, by round and by severity."""
    text = (TOP / "bench/published.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    groups = [(f"round {each}", "round", each) for each in sorted({row["round"] for row in rows})]
    groups += [(f"{each}s" if each != "info" else each, "severity", each) for each in ("error", "warning", "info")]
    say("| | findings | true | harmless | at a wrong place | false |")
    say("|---|---|---|---|---|---|")
    for title, field, value in groups:
        found = Counter(row["verdict"] for row in rows if row[field] == value)
        cells = " | ".join(str(found[each]) for each in ("true", "harmless", "misplaced", "false"))
        say(f"| {title} | {found.total()} | {cells} |")


def ranks() -> None:
    """The faults of distributed training that a run shows."""
    say("| fault | what it is | sign |")
    say("|---|---|---|")
    where = pages()
    for slug, fault in sorted(catalog().faults.items()):
        signs = [sign for sign in fault.signs if sign.detector.startswith("run/")]
        if fault.specialist == "distributed-training-strategies" and signs:
            page = os.path.relpath(where[slug], TOP / "docs")
            bounds = ", ".join(
                f"`{sign.detector}`" + (f" above {sign.above:g}" if sign.above is not None else "") for sign in signs
            )
            say(f"| [{slug}]({page}) | {fault.title} | {bounds} |")


def verdicts() -> None:
    """What a measured job can be bound by."""
    say("| verdict | meaning | seen by |")
    say("|---|---|---|")
    for slug, kind in sorted(catalog().verdicts.items()):
        signs = ", ".join(
            f"`{sign.detector}`" + (f" above {sign.above:g}" if sign.above is not None else "") for sign in kind.signs
        )
        say(f"| {slug} | {kind.title} | {signs or f'not yet: needs {kind.unseen}'} |")


def symptoms() -> None:
    """What the router hears, by specialist."""
    say("| specialist | symptom | first step | faults that explain it |")
    say("|---|---|---|---|")
    explained = catalog().faults.values()
    for slug, symptom in sorted(catalog().symptoms.items(), key=lambda item: (item[1].specialist, item[0])):
        named = ", ".join(sorted(fault.slug for fault in explained if slug in fault.explains))
        say(f"| {symptom.specialist} | {slug}: {symptom.title} | {symptom.stage.value} | {named or '–'} |")


def commands() -> None:
    """The help of every verb, as the program prints it."""
    from click import Context, Group

    from torchtriage.interface.cli import torchtriage as verbs

    top = Context(verbs, info_name="torchtriage", terminal_width=100)
    _block("torchtriage", verbs.get_help(top))
    for verb in verbs.list_commands(top):
        command = verbs.get_command(top, verb)
        if command is None:
            raise LookupError(verb)
        own = Context(command, info_name=verb, parent=top, terminal_width=100)
        _block(f"torchtriage {verb}", command.get_help(own))
        for name, part in sorted(command.commands.items()) if isinstance(command, Group) else ():
            _block(f"torchtriage {verb} {name}", part.get_help(Context(part, info_name=name, parent=own)))


def _block(title: str, text: str) -> None:
    say(f"## {title}\n\n```text\n{text}\n```\n")


def read(*paths: str) -> None:
    """What `torchtriage read` prints of files of the tests, up to what to do next."""
    from torchtriage.report.console import render
    from torchtriage.triage import read as reading

    with chdir(TOP / "tests/cases/artefacts"):
        text = render(reading(paths))
    before, _, after = text.partition("\nNext\n")
    _, unseen, rest = after.partition("\nNot seen\n")
    say(f"```text\n{before.rstrip()}\n{f'{unseen}{rest}'.rstrip()}".rstrip() + "\n```")
