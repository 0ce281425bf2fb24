"""Recorded compiler and linker output, in; kinds, names and the library's own places, out."""

from __future__ import annotations

from pathlib import Path

import pytest
from native_samples import SAMPLES

from migrate_lens.native.diagnostics import Diagnostic, Kind, classify, parse

ROOT = Path("/lib")


def read(sample: str) -> tuple[Diagnostic, ...]:
    return parse((SAMPLES / sample).read_text(), ROOT, lambda path: path.is_relative_to(ROOT))


def brief(found: tuple[Diagnostic, ...]) -> list[tuple[Kind, str, str, int]]:
    return [
        (d.kind, d.name, str(d.site.path.relative_to(ROOT)) if d.site else "", d.site.line if d.site else 0)
        for d in found
    ]


def test_a_missing_header_is_found_through_the_include_chain() -> None:
    (found,) = read("header.txt")
    assert (found.kind, found.name) == (Kind.HEADER, "torch/script.h")
    assert found.site is not None
    assert (found.site.path, found.site.line, found.site.column) == (ROOT / "csrc/util.h", 4, 10)


def test_every_error_of_a_mixed_unit_has_its_own_place() -> None:
    found = read("mixed.txt")
    assert len(found) == 59
    assert all(d.site is not None and d.site.path == ROOT / "mixed.cc" for d in found)
    assert all(d.kind is not Kind.OTHER for d in found)


def test_macros_that_an_error_came_through_are_kept_innermost_first() -> None:
    meta = next(d for d in read("mixed.txt") if d.name == "Meta")
    assert meta.macros == ("_TORCH_LIBRARY_IMPL", "TORCH_LIBRARY_IMPL")
    assert meta.owner == "torch::DispatchKey"


def test_an_error_in_a_framework_header_leads_to_the_line_that_instantiated_it() -> None:
    device = next(d for d in read("registry.txt") if d.name == "c10::Device::Device()")
    assert device.at is not None
    assert device.at.path == Path("/opt/compat/torch/library.h")
    assert device.site is not None
    assert (device.site.path, device.site.line) == (ROOT / "registry.cc", 30)
    assert "[with T = c10::Device;" in device.instantiation


def test_linker_messages_stand_at_no_place() -> None:
    assert brief(read("ld.txt")) == [
        (Kind.LINK_LIBRARY, "c10", "", 0),
        (Kind.LINK_LIBRARY, "torch_cpu", "", 0),
        (Kind.LINK_SYMBOL, "scan_rows(long, long)", "", 0),
    ]


def test_nvcc_text_is_read_though_no_gpu_was_there_to_verify_it() -> None:
    assert brief(read("nvcc.txt")) == [
        (Kind.UNDECLARED, "cumsum", "csrc/kernel.cu", 14),
        (Kind.MEMBER, "narrow", "csrc/kernel.cu", 15),
        (Kind.UNDECLARED, "AT_DISPATCH_FLOATING_TYPES", "csrc/kernel.cu", 16),
        (Kind.CALL, "torch::IValue::IValue", "csrc/kernel.cu", 31),
    ]


def test_hipcc_text_is_read_though_no_gpu_was_there_to_verify_it() -> None:
    assert brief(read("hipcc.txt")) == [
        (Kind.HEADER, "torch/script.h", "csrc/common.h", 5),
        (Kind.UNDECLARED, "cumsum", "csrc/kernel.hip", 14),
        (Kind.MEMBER, "narrow", "csrc/kernel.hip", 15),
        (Kind.UNDECLARED, "AT_DISPATCH_FLOATING_TYPES", "csrc/kernel.hip", 16),
    ]


def test_a_compiler_that_gives_up_is_heard_wherever_it_says_so() -> None:
    text = (
        "a.cc:3:9: internal compiler error: Segmentation fault\n"
        "g++: fatal error: Killed signal terminated program cc1plus\n"
        "g++: internal compiler error: Killed (program cc1plus)\n"
        "virtual memory exhausted: Cannot allocate memory\n"
        "collect2: error: ld returned 1 exit status\n"
    )
    assert [d.kind for d in parse(text, ROOT, lambda path: True)] == [Kind.COMPILER] * 4


def test_text_that_is_no_compiler_output_gives_nothing() -> None:
    assert parse("hello\n\x00\xff: 3\nMakefile:3: recipe failed\n", ROOT, lambda path: True) == ()


@pytest.mark.parametrize(
    ("message", "want"),
    [
        ("'cumsum' is not a member of 'at'; did you mean 'x'?", (Kind.UNDECLARED, "cumsum", "at")),
        ("'List' in namespace 'c10' does not name a template type", (Kind.UNDECLARED, "List", "c10")),
        ("'at::Tag' has not been declared", (Kind.UNDECLARED, "at::Tag", "")),
        ("'TORCH_WARN' was not declared in this scope", (Kind.UNDECLARED, "TORCH_WARN", "")),
        ("no type named 'type' in 'struct at::X<float>'", (Kind.UNDECLARED, "type", "struct at::X<float>")),
        (
            "'const c10::Scalar' {aka 'const class paddle::X<T>'} has no member named 'toDouble'",
            (Kind.MEMBER, "toDouble", "const c10::Scalar"),
        ),
        (
            "no match for 'operator+' (operand types are 'at::Tensor' and 'int')",
            (Kind.OPERATOR, "operator+", "'at::Tensor' and 'int'"),
        ),
        ("call of overloaded 'full(int)' is ambiguous", (Kind.CALL, "full(int)", "")),
        ("cannot convert 'at::Tensor' to 'bool' in initialization", (Kind.CONVERSION, "at::Tensor", "bool")),
        ("invalid use of incomplete type 'class at::Generator'", (Kind.ABSTRACT, "class at::Generator", "")),
        ("'SUM' conflicts with a previous declaration", (Kind.CONFLICT, "SUM", "")),
        ('#error "needs torch >= 2"', (Kind.DIRECTIVE, '"needs torch >= 2"', "")),
        ('"A_B" is not defined, evaluates to 0 [-Wundef]', (Kind.UNDEFINED_MACRO, "A_B", "")),
        ("expected ';' before 'x'", (Kind.SYNTAX, "", "")),
        ("internal compiler error: Segmentation fault", (Kind.COMPILER, ": Segmentation fault", "")),
    ],
)
def test_kind_name_and_owner(message: str, want: tuple[Kind, str, str]) -> None:
    assert classify(message) == want
