"""What a text is written on: so wide, with colours or without."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

STYLES = {
    "bold": "1",
    "dim": "2",
    "error": "1;31",
    "warning": "1;33",
    "info": "1;36",
    "good": "1;32",
    "unknown": "1;35",
}


class Paper(Struct, frozen=True):
    """width: columns of text. color: whether terminal colours may be used."""

    width: int = 80
    color: bool = False

    def ink(self, text: str, style: str) -> str:
        """TEXT in one of the STYLES, where there are colours."""
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if self.color else text

    def fold(self, text: str, indent: int = 0, mark: str = "") -> list[str]:
        """TEXT in lines of at most the paper's width, but for words that are longer; MARK stands before the first."""
        lines, later = [" " * indent + mark], " " * (indent + len(mark))
        empty = True
        for word in text.split():
            if not empty and len(lines[-1]) + 1 + len(word) > self.width:
                lines.append(later + word)
            else:
                lines[-1] += word if empty else f" {word}"
            empty = False
        return lines

    def items(self, texts: Iterable[str], indent: int, mark: str = "- ") -> list[str]:
        """Each of TEXTS behind its own MARK."""
        return [folded for text in texts for folded in self.fold(text, indent, mark=mark)]


PLAIN = Paper()
