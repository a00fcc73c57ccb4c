"""What every page stands on: its templates, its style, and the policy that lets nothing else in."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from torchtriage.report.figure import figure
from torchtriage.report.text import count

HERE = Path(__file__).parent


def style() -> str:
    """The style of every page, for a screen and a telephone, by day and by night."""
    return (HERE / "style.css").read_text(encoding="utf-8")


def environment() -> Environment:
    """Where the pages' templates are: every text is escaped, and a name that is missing is an error."""
    made = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"figure": figure, "count": count}
    return made


def policy(style: str, scripts: list[str], images: bool = False) -> str:
    """Nothing may be loaded, and only these very scripts and this style may act; by content, so that bytes repeat.

    IMAGES: those that a script draws into the page itself, as Plotly does the cells of a heat map.
    """
    allowed = " ".join(map(_source, scripts)) or "'none'"
    drawn = " img-src data:;" if images else ""
    known = f"default-src 'none'; script-src {allowed}; style-src {_source(style)};{drawn}"
    return f"{known} base-uri 'none'; form-action 'none'"


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
