"""One C++, CUDA, CMake or pyproject file: bytes in, a ``Scan`` of every torch use out; a scanner, not a compiler."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from migrate_lens.audit.source import ignores
from migrate_lens.model.uses import Certainty, Scan, Use, words

COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]((?:ATen|c10|torch|caffe2)/[^>"\n]+)[>"]', re.MULTILINE)
DEFINE = re.compile(r"^[ \t]*#[ \t]*(?:define|ifdef|ifndef|undef)[ \t]+(\w+)", re.MULTILINE)
NAME = re.compile(r"(?<![\w:])((?:at|torch|c10)(?:::\w+)+)")
MACRO = re.compile(r"\b((?:TORCH|AT|C10|CAFFE2|PYBIND11)_[A-Z0-9_]*[A-Z0-9])\b(?=\s*\(([^\n,()]*))")
LIBRARY = re.compile(r"\b(TORCH_LIBRARY(?:_IMPL|_FRAGMENT)?)\s*\(\s*(\w+)\s*,\s*(?:(\w+)\s*,\s*)?(\w+)\s*\)")
TENSOR_NAME = re.compile(
    r"\b(?:at|torch)::Tensor\b\s*(?:const\b\s*)?[&*]*\s*(\w+)\s*(?=[,;=){(])|\bauto\s*&?\s+(\w+)\s*=\s*(?:at|torch)::[a-z]\w*\("
)
STREAM_NAME = re.compile(
    r"\bCUDAStream\b\s*(?:const\b\s*)?[&*]*\s*(\w+)\s*(?=[,;=){(])|\bauto\s*&?\s+(\w+)\s*=\s*(?:at|c10)::cuda::get\w*Stream\w*\("
)
METHOD = re.compile(r"(\w+|\)|\])\s*(?:\.|->)\s*([a-zA-Z_]\w*)\s*(?=\(|<[\w:]+>\s*\()")
MODULE = re.compile(r'(?:\b(\w+)\s*=\s*)?\bpy(?:bind11)?::module_?::import\(\s*"(torch[\w.]*)"\s*\)')
ATTR = re.compile(r'(\w+|\))\s*\.\s*attr\(\s*"(\w+)"\s*\)')
CLASS = re.compile(r"\bpy(?:bind11)?::class_\s*<\s*([\w:]+)")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
TOOLCHAIN = re.compile(r"\w*(?:CUDA_HOME|CUDA_PATH|ARCH_LIST|TORCH_EXTENSIONS|libtorch|libc10)\w*|-I.*|/include.*")
SCHEMA = re.compile(r"[\w:.]+\s*\(.*\)\s*->.*")
CMAKE = re.compile(
    r"\b(find_package)\s*\(\s*Torch\b|\b(TORCH_[A-Z_]+|Torch_DIR|torch_python|CMAKE_PREFIX_PATH|ATen_\w+)\b"
    r"|^[ \t]*(target_link_libraries|target_include_directories)\b",
    re.MULTILINE | re.IGNORECASE,
)
REQUIRES = re.compile(r"^\s*(?:build-)?requires\s*=\s*\[([^\]]*)\]", re.MULTILINE)
# Methods that among C++ classes in such sources only a tensor has: enough where the receiver's type is not in sight.
TENSOR_ONLY = words(
    "narrow cuda index_select masked_fill masked_select index_put_ scalar_type unsqueeze squeeze flatten permute "
    "contiguous is_cuda is_contiguous expand_as toType new_empty new_zeros numpy_T sum_to_size to_sparse"
)
NUMBERED = re.compile(r"\d")
STREAMED = re.compile(r"\)\s*<<")


class Text:
    """Source without comments, with the offsets of its lines."""

    def __init__(self, source: bytes) -> None:
        raw = source.decode("utf-8", "replace").replace("\r\n", "\n")
        self.text = COMMENT.sub(lambda m: m[1] or "\n" * m[0].count("\n") or " ", raw)
        self.starts = [0, *(match.end() for match in re.finditer("\n", self.text))]

    def line(self, offset: int) -> int:
        """1-based line of an offset."""
        return bisect_right(self.starts, offset)


def scan_native(source: bytes) -> Scan:
    """Every torch use of a C++ or CUDA file, in the order of the file."""
    text = Text(source)
    own = {match[1] for match in DEFINE.finditer(text.text)}
    uses = [use for part in PARTS for use in part(text)]
    wanted = dict.fromkeys(use for use in uses if use.event != "macro" or use.api not in own)
    kept = sorted(wanted, key=lambda use: use.line)
    return Scan(
        uses=tuple(kept),
        exports=tuple((name, "macro") for name in sorted(own)),
        ignores=ignores(source),
        torch=bool(kept),
    )


def includes(text: Text) -> Iterator[Use]:
    """Headers of torch."""
    for match in INCLUDE.finditer(text.text):
        yield Use("include", match[1], text.line(match.start(1)))


def names(text: Text) -> Iterator[Use]:
    """Qualified names; ``then`` tells a call from a type."""
    for match in NAME.finditer(text.text):
        after = text.text[match.end() : match.end() + 60].lstrip()
        yield Use("name", match[1], text.line(match.start()), then=after[:1], value=first_argument(after))
    for match in CLASS.finditer(text.text):
        yield Use("name", "pybind11::class_", text.line(match.start()), value=match[1])


def first_argument(after: str) -> str:
    """What kind of thing a call begins with: a braced list, a number, or else empty."""
    inner = after[1:].lstrip() if after[:1] == "(" else ""
    if inner[:1] == "{":
        return "list"
    return "number" if NUMBERED.match(inner) else ""


def macros(text: Text) -> Iterator[Use]:
    """Macros of torch; ``then`` is ``<<`` where something is streamed into one."""
    for match in MACRO.finditer(text.text):
        if match[1].startswith("TORCH_LIBRARY"):
            continue
        end = text.text.find(";", match.end())
        streamed = end > 0 and STREAMED.search(text.text[match.end() : end])
        then = "<<" if streamed else ""
        yield Use("macro", match[1], text.line(match.start()), then=then, value=match[2].strip()[:40])


def libraries(text: Text) -> Iterator[Use]:
    """Registrations: the macro with its dispatch key, the methods of its library, and schemas."""
    handles = set()
    for match in LIBRARY.finditer(text.text):
        handles.add(match[4])
        yield Use("library", match[1], text.line(match.start()), value=match[3] or "")
    if not handles:
        return
    for match in METHOD.finditer(text.text):
        if match[1] in handles:
            yield Use("method", f"torch::Library::{match[2]}", text.line(match.start(2)), value="Library")
    for match in STRING.finditer(text.text):
        if SCHEMA.fullmatch(match[1]):
            yield Use("schema", "torch::Library::def", text.line(match.start()), value=match[1][:100])


def declared(pattern: re.Pattern[str], text: Text) -> set[str]:
    """Names that a file declares to be of one class."""
    return {match[1] or match[2] for match in pattern.finditer(text.text)}


def methods(text: Text) -> Iterator[Use]:
    """Methods of tensors and streams: certain of the class where the file declares the receiver."""
    tensors, streams = declared(TENSOR_NAME, text), declared(STREAM_NAME, text)
    for match in METHOD.finditer(text.text):
        line = text.line(match.start(2))
        if match[1] in tensors and match[1] not in streams:
            yield Use("method", f"Tensor::{match[2]}", line, Certainty.LIKELY, value="Tensor")
        elif match[1] in streams:
            yield Use("method", f"CUDAStream::{match[2]}", line, Certainty.LIKELY, value="CUDAStream")
        elif match[2] in TENSOR_ONLY:
            yield Use("method", f"Tensor::{match[2]}", line, Certainty.GUESS, value="Tensor")
        elif match[2] == "unwrap":
            yield Use("method", "CUDAStream::unwrap", line, Certainty.GUESS, value="CUDAStream")


def python_objects(text: Text) -> Iterator[Use]:
    """Python names that C++ reaches for through pybind: they are looked up in the Python surface."""
    modules: dict[str, str] = {}
    for match in MODULE.finditer(text.text):
        modules[match[1] or ""] = match[2]
        yield Use("import", match[2], text.line(match.start(2)))
        chained = ATTR.match(text.text, match.end() - 1)
        if chained:
            yield Use("attr", f"{match[2]}.{chained[2]}", text.line(chained.start(2)))
    for match in ATTR.finditer(text.text):
        line = text.line(match.start(2))
        if match[1] in modules:
            yield Use("attr", f"{modules[match[1]]}.{match[2]}", line)
        elif match[1] != ")":
            yield Use("attr", "", line, Certainty.GUESS, value=match[2])


def strings(text: Text) -> Iterator[Use]:
    """Literals that speak of the tool chain."""
    for match in STRING.finditer(text.text):
        if 4 < len(match[1]) < 100 and TOOLCHAIN.fullmatch(match[1].strip()):
            yield Use("string", "", text.line(match.start()), value=match[1].strip())


PARTS = (includes, names, macros, libraries, methods, python_objects, strings)


def scan_cmake(source: bytes) -> Scan:
    """What a CMake file asks of torch; targets count only in files that speak of torch."""
    raw = source.decode("utf-8", "replace").replace("\r\n", "\n")
    raw = re.sub(r"#[^\n]*", "", raw)
    starts = [0, *(match.end() for match in re.finditer("\n", raw))]
    uses = []
    for match in CMAKE.finditer(raw):
        name = match[1] or match[2] or match[3]
        offset = match.end() - len(name) if match[3] else match.start()
        uses.append(Use("cmake", name, bisect_right(starts, offset)))
    torch = any(use.api == "find_package" or use.api.upper().startswith("TORCH") for use in uses)
    return Scan(uses=tuple(dict.fromkeys(uses)) if torch else (), ignores=ignores(source), torch=torch)


def scan_pyproject(source: bytes) -> Scan:
    """Whether the build requires torch: an isolated build would fetch the real one."""
    raw = source.decode("utf-8", "replace")
    uses = []
    for match in REQUIRES.finditer(raw):
        for entry in re.finditer(r"['\"]torch\b[^'\"]*['\"]", match[1]):
            line = raw.count("\n", 0, match.start(1) + entry.start()) + 1
            uses.append(Use("requires", "torch", line))
    return Scan(uses=tuple(uses), ignores=ignores(source), torch=bool(uses))
