"""Scrubbing: nothing of a person, a machine or a private package is published."""

from __future__ import annotations

import getpass
import platform
from pathlib import Path

import pytest

from migrate_lens.remedies.publish import scrub as module
from migrate_lens.remedies.publish.scrub import scrub

_SECRETS = {
    "github": "ghp_" + "a1B2c3D4e5F6g7H8i9J0",
    "aws": "AKIA" + "ABCDEFGHIJKLMNOP",
    "huggingface": "hf_" + "abcdefghijklmnopqrst",
    "openai": "sk-" + "proj-abcdefghijklmnop1234",
    "jwt": "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM",
}


@pytest.mark.parametrize("secret", _SECRETS.values(), ids=_SECRETS)
def test_tokens_are_taken_out(secret: str) -> None:
    assert secret not in scrub(f"failed with {secret} in the header")


@pytest.mark.parametrize(("text", "gone"), [
    ("API_KEY=hunter2hunter2", "hunter2hunter2"),
    ('password: "correct horse"', "correct"),
    ("Authorization: Bearer abc.def.ghi", "abc.def.ghi"),
    ("https://jane:s3cret@git.example.com/x.git", "s3cret"),
    ("contact jane.doe@example.com", "jane.doe"),
    ("connect to 10.20.30.40:8080", "10.20.30.40"),
    ('File "/home/jane/work/secretlib/ops.py", line 3', "jane"),
    (r"C:\Users\jane\lib\ops.py", "jane"),
    ("/Users/jane/lib/x.py", "jane"),
    ("/data/team42/projects/lib/ops.py", "team42"),
    ("/home/jane/.venv/lib/python3.11/site-packages/paddle/tensor/math.py", "jane"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
])  # fmt: skip
def test_people_and_places_are_taken_out(text: str, gone: str) -> None:
    assert gone not in scrub(text)


def test_private_packages_get_another_name() -> None:
    assert scrub("secretlib.ops calls secretlib_core and notsecretlib", ["secretlib"]) == (
        "mylib.ops calls mylib_core and notsecretlib"
    )


def test_this_machine_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "buildbox7.corp.example")
    monkeypatch.setattr(getpass, "getuser", lambda: "janedoe")
    monkeypatch.setattr(Path, "home", lambda: Path("/srv/people/janedoe"))
    text = scrub("janedoe@ buildbox7 buildbox7.corp.example /srv/people/janedoe/x.py")
    assert "janedoe" not in text
    assert "buildbox7" not in text


def test_what_maintainers_need_stays() -> None:
    text = (
        "commit 7688495538f4d6c1893f084dd238a402e8f68ab6, Paddle 3.3.1, Python 3.11.7\n"
        "AttributeError: module 'paddle' has no attribute 'fmod'\n"
        "out = torch.fmod(x, 3)  # 127.0.0.1"
    )
    assert scrub(text) == text


def test_frames_of_paddle_keep_their_file() -> None:
    assert scrub('File "/opt/env/lib/python3.11/site-packages/paddle/compat/proxy.py", line 102') == (
        'File "site-packages/paddle/compat/proxy.py", line 102'
    )


assert module
