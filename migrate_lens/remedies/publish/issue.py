"""A gap, its reproduction and the two environments in; the body of an issue for Paddle's maintainers out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from migrate_lens.model.errors import UsageError
from migrate_lens.shipped import folder

LANGUAGES = ("en", "zh")
_LOG_LINES = 24


@dataclass(frozen=True, slots=True)
class Facts:
    """What an issue says of the machine."""

    paddle: str
    paddle_commit: str
    torch: str
    python: str
    cuda: str
    driver: str
    system: str
    compiler: str


@dataclass(frozen=True, slots=True)
class Body:
    """What an issue is made of; every field is named in the templates."""

    gap: Mapping[str, Any]
    facts: Facts
    files: Mapping[str, str]
    main: str
    run_torch: str
    run_paddle: str
    build: str
    torch_log: str
    paddle_log: str
    where: Sequence[str]
    tests: Sequence[str]
    workaround: str
    times: int = 3


def render(body: Body, language: str, override: Path | None = None) -> str:
    """The issue as Markdown.

    Args:
        body: what it says.
        language: ``en`` or ``zh``.
        override: a folder with templates of the user's own, which win over the shipped ones.

    Raises:
        UsageError: there is no such language, or a template is not valid.
    """
    if language not in LANGUAGES:
        raise UsageError(f"no issue template for {language!r}", f"one of {', '.join(LANGUAGES)}")
    return render_template(f"issue.{language}.md.j2", {"body": body, "title": title(body.gap)}, override)


def render_template(name: str, values: Mapping[str, object], override: Path | None = None) -> str:
    """Fill a template; a name that it does not get is an error, never an empty line.

    Raises:
        UsageError: the template is not valid.
    """
    import jinja2

    folders = [str(place) for place in (override, folder("templates")) if place is not None]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders), undefined=jinja2.StrictUndefined, keep_trailing_newline=True,
        trim_blocks=True, lstrip_blocks=True, autoescape=False,
    )  # fmt: skip
    try:
        return environment.get_template(name).render(values)
    except jinja2.TemplateError as error:
        raise UsageError(f"template {name}: {error}", "correct it, or leave --templates out") from error


def title(gap: Mapping[str, Any]) -> str:
    """The title that Paddle's maintainers ask for."""
    return f"[Cross-Ecosystem Custom Op] {_subject(gap)} is missing or inconsistent in Paddle compat layer"


def _subject(gap: Mapping[str, Any]) -> str:
    api, symptom = gap["api"], gap["symptom"]
    if symptom in ("missing_api", "missing_header", "op_not_found", "compile_error", "link_error", "import_error"):
        return str(api)
    words = {"missing_argument": "an argument of", "value": "the result of", "alias": "memory sharing of"}
    return f"{words.get(symptom, f'{symptom} of')} {api}"


def excerpt(log: str, *, passed: bool = False) -> str:
    """The last lines of a log; a traceback's end is what matters. A long log of a run that passed says nothing."""
    lines = log.rstrip().splitlines()
    if passed and len(lines) > _LOG_LINES:
        return ""
    return "\n".join(lines if len(lines) <= _LOG_LINES else ["...", *lines[-_LOG_LINES:]])


@cache
def anchors() -> Mapping[str, Any]:
    """Where in Paddle each layer lives, and its tests."""
    return tomllib.loads((folder("templates") / "anchors.toml").read_text(encoding="utf-8"))


def places(gap: Mapping[str, Any], raised_in: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files of Paddle to look at, and the nearest existing tests of its compat layer."""
    table = anchors()
    layer = table.get(str(gap["layer"]), table["python_interface"])
    files = [raised_in] if raised_in else []
    files += [entry["file"] for entry in layer.get("by_api", ()) if re.match(entry["api"], str(gap["api"]))]
    files += layer["files"]
    tests = [entry["test"] for entry in layer.get("by_api", ()) if re.match(entry["api"], str(gap["api"]))]
    tests += layer["tests"]
    return tuple(dict.fromkeys(f for f in files if f)), tuple(dict.fromkeys(t for t in tests if t))
