"""Planted secrets: none is in anything that is written for posting, and a program with stand-ins is still a program."""

from __future__ import annotations

import ast

import planted
import pytest

from migrate_lens.remedies.publish.issue import Facts, said_by_all
from migrate_lens.remedies.publish.keys import keys
from migrate_lens.remedies.publish.scrub import Kind, Scrubber, Unpublishable
from migrate_lens.remedies.publish.sources import without_comments
from migrate_lens.remedies.publish.surroundings import Surroundings, surroundings

_NOBODY = Surroundings()
_PLANTED = planted.secrets(200)
_EACH = pytest.mark.parametrize(
    ("kind", "secret"), _PLANTED, ids=[f"{kind}{n}" for n, (kind, _) in enumerate(_PLANTED)]
)
_PLACES = (
    "{0}",
    "RuntimeError: cannot reach {0}",
    "KeyError: '{0}'",
    "ValueError: got ({0}, 3)",
    '{{"url": "{0}", "n": 1}}',
    "  warnings.warn(f'see {0}')",
    "x={0}&y=2",
)


@_EACH
def test_a_log_has_none(kind: str, secret: str) -> None:
    for place in _PLACES:
        said = Scrubber((), _NOBODY).text(place.format(secret))
        assert secret not in said
        assert _telling(kind, secret) not in said, said


def _telling(kind: str, secret: str) -> str:
    """The part of a secret that must not be left by itself."""
    match kind:
        case "host":
            return secret.partition(".")[0]
        case "bucket":
            return secret.split("/")[2]
        case "windows":
            return secret.split("\\")[2]
        case "mailbox":
            return secret.partition("@")[0]
        case _:
            return secret[-12:]


@_EACH
def test_a_python_source_has_none_and_means_the_same(kind: str, secret: str) -> None:
    text = f"def f(x, key={secret!r}):\n    return {{key: x, 'a': {secret!r}}}[{secret!r}]\n\n\nresult = f(1)\n"
    made = Scrubber((), _NOBODY).source("mre.py", text)
    assert _telling(kind, secret) not in made
    names: dict[str, object] = {}
    exec(compile(made, "mre.py", "exec"), names)
    assert names["result"] == 1


@_EACH
def test_a_cpp_source_has_none(kind: str, secret: str) -> None:
    escaped = secret.replace("\\", "\\\\")
    text = (
        f'// by {secret}\n#include <ATen/ATen.h>\n/* {secret} */\nconst char* where = "{escaped}";\n'
        f'const char* raw = R"({secret})";\nint f() {{ return 1; }}  // {secret}\n'
    )
    made = Scrubber((), _NOBODY).source("a.cc", without_comments("a.cc", text))
    assert _telling(kind, secret) not in made
    assert "//" not in made.replace("://", "")
    assert "/*" not in made
    assert "#include <ATen/ATen.h>" in made
    assert "int f() { return 1; }" in made


@pytest.mark.parametrize("value", planted.variables(24).values())
def test_values_of_the_environment_are_taken_out(value: str) -> None:
    scrubber = Scrubber((), surroundings({"SOME_SETTING": value}))
    assert value not in scrubber.text(f"KeyError: {value!r}")
    source = scrubber.source("a.py", f"names = {{{value!r}: 1}}\nresult = names[{value!r}]\n")
    assert value not in source
    assert ast.parse(source)
    assert [one.kind for one in scrubber.replaced] == [Kind.VARIABLE]


@pytest.mark.parametrize(("name", "value"), [
    ("LANG", "en_US.UTF-8"), ("TERM", "xterm-256color"), ("OMP_NUM_THREADS", "12345678"), ("DTYPE", "float32"),
    ("NAME", "torch"), ("FLAG", "1"), ("PATH", "/usr/local/bin:/usr/bin"), ("CUDA_HOME", "/usr/local/cuda"),
])  # fmt: skip
def test_plainly_harmless_values_stay(name: str, value: str) -> None:
    known = surroundings({name: value})
    assert known.values == ()
    assert known.folders == ()


@pytest.mark.parametrize("text", [
    '{"password": "tr0ub4dor"}', "{'password': 'tr0ub4dor'}", 'login(password="tr0ub4dor")',
    'config["api_key"] = "tr0ub4dor"',
    'std::map<A, B> m{{"password", "tr0ub4dor"}};', 'auth_token: str = "tr0ub4dor"', 'const char* token = "tr0ub4dor";',
    'std::string password("tr0ub4dor");', "DB_PASSWORD=tr0ub4dor", "https://jane:tr0ub4dor@db.example.org/x",
    'json.loads("{\\"password\\": \\"tr0ub4dor\\"}")', "Authorization: Bearer tr0ub4dor.tr0ub4dor",
])  # fmt: skip
def test_what_is_told_by_its_name_is_taken_out(text: str) -> None:
    assert "tr0ub4dor" not in Scrubber((), _NOBODY).text(text)


def test_secrets_keep_apart_and_keep_their_stand_in() -> None:
    scrubber = Scrubber((), _NOBODY)
    one, other = (secret for kind, secret in _PLANTED[:24] if kind == "payment")
    source = scrubber.source("a.py", f"a, b = {one!r}, {other!r}\n")
    left, right = ast.literal_eval(source.partition("= ")[2])
    assert left != right
    assert scrubber.text(f"KeyError: {one!r}") == f"KeyError: {left!r}"


@_EACH
def test_the_second_time_changes_nothing(kind: str, secret: str) -> None:
    once = Scrubber((), _NOBODY).text(f"RuntimeError: {kind} {secret}")
    assert Scrubber((), _NOBODY).text(once) == once


@pytest.mark.parametrize("text", [
    "undefined symbol: _ZNK2at10TensorBase14const_data_ptrIfEEPKT_v",
    "torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)",
    "TestConv2dFloat32Bfloat16Channels", "build/lib.linux-x86_64-cpython-311/mylib",
    "tensor([0.12345678901234567890, 1e-10])",
    "commit 7688495538f4d6c1893f084dd238a402e8f68ab6", "0x7f3a5c0d1e2f",
    "python/paddle/nn/functional/activation.py:123",
    "ModuleNotFoundError: No module named 'torch.utils._python_dispatch'", "c10::impl::InlineDeviceGuard<c10::Device>",
    "Float8_e4m3fnuz, uint16, complex128, quint8", "self.local(x), threading.local()", "2026-12-01T09:36:06.640",
])  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    assert list(keys(text)) == []
    assert Scrubber((), _NOBODY).text(text) == text


def test_what_every_issue_says_is_nobodys_secret() -> None:
    facts = Facts("3.3.1", "7688495538f4d6c1", "2.13.0", "3.11.7", "", "", "Debian GNU/Linux 12 (bookworm)", "g++ 12")
    known = surroundings({"A": "7688495538f4d6c1", "B": "Reproduction", "C": "enable_compat", "D": "harbourquartz42"})
    assert known.beside(said_by_all(facts)).values == ("harbourquartz42",)


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(Unpublishable):
        Scrubber((), _NOBODY).source("a.cc", 'const char* a = R"(\u202e)";\n')
    with pytest.raises(Unpublishable):
        Scrubber((), _NOBODY).source("a.py", "x = 'open\n")


def test_what_is_left_somewhere_is_refused() -> None:
    scrubber = Scrubber((), surroundings({"SETTING": "harbourquartz42"}))
    with pytest.raises(Unpublishable, match=r"mre\.json"):
        scrubber.refuse({"issue.md": "well", "mre.json": '{"id": "harbourquartz42"}'})


def test_signs_that_are_not_shown_are_written_as_escapes() -> None:
    text = "x = 'a\u202eb\x1b'\n"
    made = Scrubber((), _NOBODY).source("a.py", text)
    assert made.isascii()
    assert ast.literal_eval(made.partition("= ")[2]) == "a\u202eb\x1b"


@pytest.mark.parametrize(("before", "after"), [
    ("x = 1  # by jane\n", "x = 1\n"),
    ('"""Jane\'s."""\n\nimport torch\n', "pass\n\nimport torch\n"),
    ("def f():\n    '''Jane.'''\n", "def f():\n    pass\n"),
    ("x = '# no comment'\n", "x = '# no comment'\n"),
    ("# one\n# two\n\nx = 1\n", "x = 1\n"),
    ("x = [1,  # one\n     2]\n", "x = [1,\n     2]\n"),
])  # fmt: skip
def test_comments_of_python_go(before: str, after: str) -> None:
    assert without_comments("a.py", before) == after


@pytest.mark.parametrize(("before", "after"), [
    ("int x;  // by jane\n", "int x;\n"),
    ("/* jane\n * doe */\nint x;\n", "int x;\n"),
    ('auto s = "// no comment";\n', 'auto s = "// no comment";\n'),
    ('auto s = R"x(/* no )" comment)x";\n', 'auto s = R"x(/* no )" comment)x";\n'),
    ("int a = 1'000; // it's\n", "int a = 1'000;\n"),
    ("f(/*n=*/3);\n", "f( 3);\n"),
    ("// a \\\n   b\nint x;\n", "int x;\n"),
])  # fmt: skip
def test_comments_of_cpp_go(before: str, after: str) -> None:
    assert without_comments("a.cc", before) == after
