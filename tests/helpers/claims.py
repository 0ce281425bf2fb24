"""Small programs, in; what each one prints or raises on one side, out: one import of the framework for all."""

from __future__ import annotations

import json
import subprocess
import sys

COMPAT = "import paddle\npaddle.enable_compat()\n"
# Runs in the interpreter that has the framework: each program in a fork of its own, so that none sees another.
SERVER = """
import io, json, os, signal, sys, traceback, contextlib, warnings
warnings.simplefilter("ignore")
{prelude}
import torch


def outcome(program):
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(program, "claim", "exec"), {{"__name__": "claim"}})
    except BaseException as error:
        return f"{{said.getvalue()}}raises {{type(error).__name__}}"
    return said.getvalue().strip()


def alone(program):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(60)
        os.write(writing, outcome(program).encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read().decode()
    _, status = os.waitpid(child, 0)
    return said if not status else f"ended with {{status}}"


print(json.dumps([alone(program) for program in json.loads(sys.argv[1])]))
"""


def outcomes(programs: list[str], *, compat: bool) -> list[str]:
    """What each program does with torch, or with the other framework in torch's place."""
    server = SERVER.format(prelude=COMPAT if compat else "")
    command = [sys.executable, "-W", "ignore", "-c", server, json.dumps(programs)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    answers: list[str] = json.loads(done.stdout.splitlines()[-1])
    return answers
