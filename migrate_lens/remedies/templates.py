"""The name of a template and what it is filled with, in; the text out.

Into Markdown every value goes as text: what a library calls its files, or says in an exception, is not Markdown. A
template that shows code asks for it: ``{{ name | code }}`` in a line, ``{{ text | fenced("python") }}`` in lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from migrate_lens.media import Markdown, code, fenced, markdown
from migrate_lens.model.errors import UsageError
from migrate_lens.shipped import folder

_IN_MARKDOWN = ".md.j2"


def render(name: str, values: Mapping[str, object], override: Path | None = None) -> str:
    """Fill a template; a name that it does not get is an error, never an empty line.

    Args:
        name: its file.
        values: what it is filled with.
        override: a folder with templates of the user's own, which win over the shipped ones.

    Raises:
        UsageError: the template is not valid.
    """
    import jinja2

    folders = [str(place) for place in (override, folder("templates")) if place is not None]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        finalize=_text if name.endswith(_IN_MARKDOWN) else None,
    )
    environment.filters |= {"code": code, "fenced": fenced}
    try:
        return environment.get_template(name).render(values)
    except jinja2.TemplateError as error:
        raise UsageError(f"template {name}: {error}", "correct it, or leave --templates out") from error


def _text(value: object) -> str:
    return value if isinstance(value, Markdown) else markdown(str(value))
