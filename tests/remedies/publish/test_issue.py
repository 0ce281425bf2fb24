"""Issue bodies: every field is there, in both languages, and a template cannot lose one."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_reports import gap

from migrate_lens.model.errors import UsageError
from migrate_lens.model.report import Layer, Symptom
from migrate_lens.remedies.publish.issue import Body, Facts, excerpt, places, render, title
from migrate_lens.remedies.publish.verify import _failure

_GAP = gap("torch.fmod", "missing_api", expected="exists", actual="raises AttributeError")
_FACTS = Facts("3.3.1", "7688495", "2.13.0", "3.11.7", "none", "none", "Linux", "g++ 12")
_BODY = Body(
    _GAP, _FACTS, {"mre.py": "import torch\ntorch.fmod\n"}, "mre.py", "python mre.py", "python -c ... mre.py", "", "",
    "AttributeError: fmod", ("python/paddle/tensor/math.py",), ("test/compat/test_torch_proxy.py",), "",
)  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_body_has_everything(language: str) -> None:
    text = render(_BODY, language)
    facts = ("3.3.1", "7688495", "2.13.0", "3.11.7", "g++ 12", "Linux")
    rest = (
        "torch.fmod",
        "python -c ... mre.py",
        "AttributeError: fmod",
        "python_interface",
        "test/compat/test_torch_proxy.py",
    )
    assert [part for part in (*facts, *rest) if part not in text] == []
    behaviour = {
        "en": "torch.fmod is missing in Paddle's torch compat layer",
        "zh": "Paddle 的 torch 兼容层缺少 torch.fmod",
    }
    assert text.startswith(f"# [Cross-Ecosystem Custom Op] {behaviour[language]}\n")


def test_an_unknown_language_says_which_there_are() -> None:
    with pytest.raises(UsageError) as error:
        render(_BODY, "fr")
    assert error.value.remedy == "one of en, zh"


def test_a_template_of_the_users_own_wins(tmp_path: Path) -> None:
    (tmp_path / "issue.en.md.j2").write_text("mine: {{ body.gap.api }}\n")
    assert render(_BODY, "en", tmp_path) == "mine: torch.fmod\n"


def test_a_misspelt_field_is_an_error_not_an_empty_line(tmp_path: Path) -> None:
    (tmp_path / "issue.en.md.j2").write_text("{{ body.gap.apii }}\n")
    with pytest.raises(UsageError, match="apii"):
        render(_BODY, "en", tmp_path)


def test_behaviour_is_named_in_the_title() -> None:
    assert title(gap("torch.Tensor.expand", "alias")).endswith(
        " torch.Tensor.expand shares memory otherwise than PyTorch"
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_symptom_has_a_title_that_says_what_happens(language: str) -> None:
    titles = {title(gap("torch.f", symptom), language) for symptom in Symptom}
    assert len(titles) == len(Symptom)
    assert all("torch.f" in one and "inconsistent" not in one for one in titles)


def test_a_log_has_no_warnings_of_the_framework() -> None:
    warning = "a/b.py:712: UserWarning: No ccache found.\n  warnings.warn(message)\n"
    log = f"{warning}Traceback:\n  File 'mre.py'\nValueError: x\n"
    assert excerpt(log) == "Traceback:\n  File 'mre.py'\nValueError: x"


def test_a_log_has_no_noise_of_a_build() -> None:
    log = (
        "Compiling user custom op, it will cost a few seconds.....\n"
        "[2026-12-01 09:57:45,128] [    INFO] dist.py:1044 - running build\n"
        "!!\n\n        ********************\n        Please avoid running ``setup.py`` directly.\n"
        "        ********************\n\n!!\n  self.initialize_options()\n"
        "csrc/mre.cc: In function ‘at::Tensor run(at::Tensor)’:\n"
        "csrc/mre.cc:6:5: error: ‘class at::Tensor’ has no member named ‘index_put_’\n"
        "    6 |   y.index_put_(9.0);\n"
        "[2026-12-01 09:57:46,267] [    INFO] base.py:1176 - g++ -O0 -o build/mre.so\n"
        "ld: cannot find build/csrc/mre.o: No such file or directory\n"
        "collect2: error: ld returned 1 exit status\nerror: Command '['g++']' returned non-zero exit status 1.\n"
    )
    assert excerpt(log).splitlines() == [
        "csrc/mre.cc: In function ‘at::Tensor run(at::Tensor)’:",
        "csrc/mre.cc:6:5: error: ‘class at::Tensor’ has no member named ‘index_put_’",
        "    6 |   y.index_put_(9.0);",
    ]


def test_an_error_of_the_linker_stays_where_all_compiled() -> None:
    log = "/usr/bin/ld: cannot find -ltorch: No such file\ncollect2: error: ld returned 1 exit status\n"
    assert excerpt(log) == log.rstrip()


def test_places_follow_the_layer_and_the_frame_that_raised() -> None:
    where = "paddle/compat/proxy.py:12 __getattr__"
    files, tests = places(gap("torch.version.cuda", "value", layer=Layer.PYTHON_PROXY, raised_in=where))
    assert files[0] == "python/paddle/compat/proxy.py"
    assert tests[0] == "test/compat/test_version_cuda.py"


@pytest.mark.parametrize(("code", "stderr", "failure"), [
    (0, "", ""),
    (-11, "", "SIGSEGV"),
    (1, 'Traceback (most recent call last):\n  File "mre.py", line 1\nValueError: (Invalid) a\n\nb: c\n', "ValueError"),
    (1, "Traceback (most recent call last):\n  File \"a\", line 1\nAssertionError\n", "AssertionError"),
    (3, "no traceback", "exit status 3"),
])  # fmt: skip
def test_the_failure_of_a_clean_run(code: int, stderr: str, failure: str) -> None:
    assert _failure(code, stderr) == failure
