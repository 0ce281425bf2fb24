"""A gap, its reproduction and the two environments in; the body of an issue for Paddle's maintainers out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from migrate_lens.media import Markdown, markdown
from migrate_lens.model.errors import UsageError
from migrate_lens.model.reading import Fields
from migrate_lens.model.report import Category, Gap, Layer, Symptom
from migrate_lens.remedies import templates
from migrate_lens.remedies.publish.met import Met
from migrate_lens.remedies.publish.verify import IN_SCOPE, UNDER_PADDLE
from migrate_lens.shipped import folder

LANGUAGES = ("en", "zh")
_LOG_LINES = 24


@dataclass(frozen=True, slots=True)
class Facts:
    """What an issue says of the machine; what is empty is not there, and a ``?`` is there in an unknown version."""

    paddle: str
    paddle_commit: str
    torch: str
    python: str
    cuda: str
    driver: str
    system: str
    compiler: str


@dataclass(frozen=True, slots=True)
class Also:
    """Another name that the same cause is met at.

    Attributes:
        api: the name.
        statement: the line of its own reproduction that fails.
        file: that reproduction.
    """

    api: str
    statement: str
    file: str


_NOBODY = Met()


@dataclass(frozen=True, slots=True)
class Body:
    """What an issue is made of; every field is named in the templates.

    Attributes:
        gap: what it is about.
        facts: of the machine.
        files: the reproduction, by name.
        main: the file to run.
        run_torch, run_paddle, build: what is typed.
        torch_log, paddle_log: what was said then.
        where, tests: parts of Paddle to look at.
        workaround: a patch; empty where there is none.
        times: runs on each side.
        met: who met it, and how often.
        also: other names with the same cause.
        private: what of PyTorch's that is private it is about; empty where it is public.
    """

    gap: Gap
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
    met: Met = _NOBODY
    also: Sequence[Also] = ()
    private: str = ""


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
    return templates.render(f"issue.{language}.md.j2", {"body": body, "title": _heading(body, language)}, override)


def said_by_all(known: Facts) -> str:
    """What stands in every issue: the words of the templates, and what the machine's facts are."""
    own = [file.read_text(encoding="utf-8") for file in sorted(folder("templates").rglob("*")) if file.is_file()]
    return "\n".join((*own, *(str(getattr(known, one.name)) for one in fields(known)), UNDER_PADDLE, IN_SCOPE))


_RAISES = "raises "
_ERROR = re.compile(r"(?:.* )?raises (?:\w+\.)*(\w+)")
_PREFIX = "[Cross-Ecosystem Custom Op]"


@cache
def _titles(language: str) -> Mapping[str, str]:
    """A sentence for each symptom, as the shipped file has them."""
    raw = tomllib.loads((folder("templates") / "titles.toml").read_text(encoding="utf-8"))
    return {symptom: str(sentence) for symptom, sentence in raw[language].items()}


def title(gap: Gap, language: str = "en", also: Sequence[str] = ()) -> str:
    """What a reader of the list of issues sees: the behaviour, in a sentence of the issue's language.

    Args:
        gap: what the issue is about.
        language: of the issue.
        also: other names that it is about.
    """
    return f"{_PREFIX} {_behaviour(gap, language, also)}"


def _behaviour(gap: Gap, language: str, also: Sequence[str]) -> str:
    sentences = _titles(language)
    which = str(gap.symptom)
    if gap.symptom is Symptom.EXCEPTION and gap.expected.startswith(_RAISES):
        which = "accepts"
    error = _ERROR.match(gap.expected if which == "accepts" else gap.actual)
    said = sentences[f"{which}_several" if also else which]
    return said.format(api=_listed((gap.api, *also), sentences["and"]), error=error[1] if error else sentences["error"])


def _listed(names: Sequence[str], last: str) -> str:
    """Names as a list in a sentence; a prefix that all of them have is said once."""
    module = f"{names[0].rpartition('.')[0]}."
    shown = [names[0], *(name.removeprefix(module[:-1]) for name in names[1:])]
    if len(shown) == 1:
        return shown[0]
    return f"{', '.join(shown[:-1])}{last}{shown[-1]}"


def _heading(body: Body, language: str) -> Markdown:
    """The title where it stands above the issue."""
    said = _behaviour(body.gap, language, [one.api for one in body.also])
    return Markdown(f"{_PREFIX} {markdown(said)}")


_WARNING = re.compile(r"\S+:\d+: \w*Warning: ")


def without_warnings(log: str) -> str:
    """A log without Python's warnings, each with the line of source that Python shows below it."""
    kept: list[str] = []
    below = False
    for line in log.splitlines():
        warns = _WARNING.match(line) is not None
        if not warns and not (below and line.startswith("  ")):
            kept.append(line)
        below = warns
    return "\n".join(kept)


def private_part(gap: Gap) -> str:
    """What of PyTorch's that is private a gap of category B is about; empty for all others."""
    if gap.category is not Category.B:
        return ""
    parts = gap.api.split(".")
    private = [at for at, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")]
    return ".".join(parts[: private[0] + 1]) if private else gap.api


def changes(patch: str) -> str:
    """A patch without the lines around it, which are the library's own."""
    return "\n".join(line for line in patch.splitlines() if line.startswith(("+", "-", "@@")))


_BUILD = re.compile(
    r"\[\d{4}-\d\d-\d\d [\d:,.]+\] \[ *\w+\]|(?:ccache )?(?:g\+\+|gcc|c\+\+|x86_64-\S+) .* -[cox] |!!$|\s*\*{20,}"
    r"|Compiling user custom op|Received len\(custom_op\)|Using \d+ workers|\S+\.o is compiled"
    r"|(?:running|creating|copying|Copying|writing|reading|adding|removing|building|installing|Installed"
    r"|Processing|zip_safe|byte-compiling|Adding|Extracting|Finished|Using|Emitting|Allowing"
    r"|Compiling objects|\[\d+/\d+\]|ninja:) ?.*"
    r"|warning: \w+: byte-compiling is disabled|\s*self\.initialize_options\(\)|No CUDA runtime|W\d{4} "
)
# What a build says once a unit did not compile.
_FOLLOWS = re.compile(r"\S*ld: cannot find \S+\.o: |collect2: error: ld returned|error: Command |error: command ")
_BOXED = re.compile(r"!!\n+ *\*{20,}.*?\*{20,}\n+!!\n", re.DOTALL)
_COMPILER = re.compile(r"\S+:\d+:(?:\d+:)? (?:fatal )?error: ")


def without_build(log: str) -> str:
    """A log without what a build says while all goes well, nor what follows from the first error of a compiler."""
    lines = [line for line in _BOXED.sub("", f"{log}\n").splitlines() if not _BUILD.match(line)]
    if any(_COMPILER.match(line) for line in lines):
        lines = [line for line in lines if not _FOLLOWS.match(line)]
    return "\n".join(lines)


def excerpt(log: str, *, passed: bool = False) -> str:
    """The last lines of a log; a traceback's end is what matters. A long log of a run that passed says nothing."""
    lines = without_build(without_warnings(log)).strip("\n").splitlines()
    if passed and len(lines) > _LOG_LINES:
        return ""
    return "\n".join(lines if len(lines) <= _LOG_LINES else ["...", *lines[-_LOG_LINES:]])


@dataclass(frozen=True, slots=True)
class Anchor:
    """A part of Paddle that names of torch's belong to: a pattern for the names, a file or a test."""

    api: str
    file: str
    test: str


@dataclass(frozen=True, slots=True)
class Anchors:
    """Where in Paddle a layer lives: its files and tests, and those of some of its names."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    by_api: tuple[Anchor, ...]

    @classmethod
    def from_toml(cls, fields: Fields) -> Anchors:
        """The anchors of a layer, as the shipped file has them."""
        by_api = tuple(
            Anchor(entry.text("api"), entry.text("file", ""), entry.text("test", ""))
            for entry in fields.parts("by_api", ())
        )
        return cls(fields.texts("files"), fields.texts("tests"), by_api)


@cache
def anchors() -> Mapping[str, Anchors]:
    """Where in Paddle each layer lives, and its tests."""
    raw = tomllib.loads((folder("templates") / "anchors.toml").read_text(encoding="utf-8"))
    return {layer: Anchors.from_toml(Fields.of(entry, layer)) for layer, entry in raw.items()}


def places(gap: Gap) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files of Paddle to look at, and the nearest existing tests of its compat layer."""
    known = anchors()
    layer = known.get(gap.layer, known[Layer.PYTHON_INTERFACE])
    near = [anchor for anchor in layer.by_api if re.match(anchor.api, gap.api)]
    files = (raised_in(gap), *(anchor.file for anchor in near), *layer.files)
    tests = (*(anchor.test for anchor in near), *layer.tests)
    return tuple(dict.fromkeys(filter(None, files))), tuple(dict.fromkeys(filter(None, tests)))


def raised_in(gap: Gap) -> str:
    """The file of Paddle that raised, as its repository has it; empty where it is not known to be Paddle's."""
    return f"python/{gap.raised_in.partition(':')[0]}" if gap.raised_in.startswith("paddle/") else ""
