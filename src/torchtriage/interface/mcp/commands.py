"""Which jobs a client may start: a list of words whose program and script are the user's own, and never a shell."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from torchtriage.interface.mcp.paths import Roots, refused, shown

# fmt: off
SHELLS = frozenset((
    "ash", "bash", "busybox", "cmd", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "powershell", "pwsh",
    "rbash", "sh", "tcsh", "xonsh", "zsh",
))
RUNNERS = frozenset((
    "doas", "env", "eval", "exec", "nice", "nohup", "setsid", "ssh", "stdbuf", "su", "sudo", "time", "timeout", "xargs",
))
# fmt: on
LONGEST = 32_768  # characters of all words together


def checked(words: Sequence[str], folder: Path, roots: Roots) -> list[str]:
    """WORDS if they may be started in FOLDER; raises TriageError if not."""
    where = shown(" ".join(words))
    if not words or not words[0].strip():
        raise refused("there is no command", "command", 'Give a list of words, as ["train.py", "--lr", "1e-3"].')
    if any("\0" in word for word in words) or sum(map(len, words)) > LONGEST:
        raise refused(f"words with null bytes, or more than {LONGEST:,} characters", where, "Write fewer, plain words.")
    _program(words[0], folder, roots)
    for script in _scripts(words):
        roots.path(script, folder)
    return list(words)


def _scripts(words: Sequence[str]) -> list[str]:
    """What Python is told to run by path: the first word after an interpreter that is no option, and the first .py."""
    found = [word for word in words if word.lower().endswith(".py")][:1]
    if Path(words[0]).name.lower().startswith(("python", "pypy")):
        rest = list(words[1:])
        while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c", "-"):
            del rest[: 2 if rest[0] in ("-X", "-W", "--check-hash-based-pycs") else 1]
        if rest and not rest[0].startswith(("-m", "-c")) and rest[0] != "-":
            found.append(rest[0])
    return found


def _program(word: str, folder: Path, roots: Roots) -> None:
    name = Path(word).name.lower().removesuffix(".exe")
    if name in SHELLS | RUNNERS:
        do = 'Name the program itself and its arguments, as ["torchrun", "--nproc-per-node", "2", "train.py"].'
        raise refused("nothing is run through a shell, or through a program that runs others", shown(word), do)
    if word.startswith("-"):
        raise refused("a command that looks like an option", shown(word), "Begin with the script or the program.")
    if any(letter.isspace() for letter in word):
        do = "Give each argument as a word of its own; no line is taken apart."
        raise refused("a program with blanks in its name", shown(word), do)
    if "/" in word and shutil.which(name) != word:  # the same as a bare name, which is looked for on PATH
        roots.path(word, folder)
