"""Programs, in; observed, they print what they print unobserved, out."""

from __future__ import annotations

from pathlib import Path

import pytest
from observed_programs import check_prints_the_same, torch_bench

from benchmarks.transparency import TESTS
from migrate_lens.discovery.discover import discover
from migrate_lens.model.report import Runtime
from migrate_lens.runs.bench import Bench, RunRequest, Setting

pytestmark = pytest.mark.real

__all__ = ["torch_bench"]

PROGRAMS = {
    "a container that is called in its own way": """
import torch
class Twice(torch.nn.Sequential):
    def __call__(self, x):
        return super().__call__(super().__call__(x))
print(Twice(torch.nn.Linear(2, 2, bias=False)).forward is not None, Twice(torch.nn.ReLU())(torch.ones(1)))
""",
    "a container with another forward of its class": """
import torch
class Negated(torch.nn.Sequential):
    def forward(self, x):
        return -super().forward(x)
print(Negated(torch.nn.ReLU())(torch.ones(2)))
""",
    "a container with another forward of its own": """
import torch
net = torch.nn.Sequential(torch.nn.ReLU())
net.forward = lambda x: x * 7
print(net(torch.ones(2)))
""",
    "a hook on the container": """
import torch
seen = []
net = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Tanh()))
net[1].register_forward_hook(lambda m, i, o: seen.append(type(m).__name__))
net(torch.ones(1))
print(seen)
""",
    "a hook on all layers": """
import torch
seen = []
from torch.nn.modules.module import register_module_forward_hook
handle = register_module_forward_hook(lambda m, i, o: seen.append(type(m).__name__))
torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())(torch.ones(1))
handle.remove()
print(seen)
""",
    "builtins of the program's own": """
import builtins, torch
plain = builtins.isinstance
builtins.isinstance = lambda value, kind: plain(value, kind)
builtins.len = lambda value: 0
print(torch.ones(2) + 1)
""",
    "the names of the main module": """
import torch
print(sorted(name for name in globals() if not name.startswith("_")))
print(__annotations__, type(__builtins__).__name__, type(__loader__).__name__, __spec__)
""",
    "a tensor's methods of the program's own": """
import torch
torch.Tensor.detach = lambda tensor: print("detach")
print((torch.ones(2) + 1).sum().item())
""",
    "the names that Python's messages on arguments have": """
import torch
def f(*args, **kwargs): ...
class Net(torch.nn.Module):
    def forward(self, x): return x
for call in (lambda: f(1, **{'a': 1}, a=2), lambda: f(**{1: 2}), lambda: f(*3),
             lambda: f(**'s'),
             lambda: Net().forward(*4), lambda: torch.relu(*5), lambda: torch.nn.ReLU()(*8),
             lambda: torch.ones(2).sum(**6), lambda: len(*7)):
    try: call()
    except TypeError as error: print(error)
""",
    "a name that is not there is missed before its arguments are evaluated": """
import torch
def loud(): print("evaluated")
for call in (lambda: torch.nn.functional.absent(loud()), lambda: torch.ones(1).absent(loud()),
             lambda: torch.absent(undefined), lambda: torch.absent(*[loud()]),
             lambda: torch.nn.Linear(2, 2).absent(k=loud())):
    try: call()
    except (AttributeError, NameError) as error: print(type(error).__name__, error)
values = iter([1., 4.])
try: x = torch.tensor(next(values)).absent(next(values))
except AttributeError: x = torch.tensor(next(values))
print(x)
""",
    "a name that the arguments change": """
import torch, types
layer = torch.nn.ReLU()
def patch():
    layer.extra = lambda x: print("new", x)
    torch.relu = lambda x: print("patched", x)
    return torch.ones(1)
layer.extra = lambda x: print("old", x)
layer.extra(patch())
kept, torch.relu = torch.relu, torch.nn.functional.relu
print(torch.relu(patch()))
torch.relu(1)
""",
    "who called": """
import inspect, logging, sys, torch, traceback, warnings
def caller(): return sys._getframe(1).f_code.co_name, sys._getframe(1).f_lineno
def stack(): return [f.function for f in inspect.stack()]
class Net(torch.nn.Module):
    def forward(self, x):
        print(caller(), stack()[:2])
        return max([x, x], key=lambda y: (print(caller()), y.sum().item())[1])
    @property
    def seen(self): return caller()
def inject(name): sys._getframe(1).f_globals[name] = 1
inject("injected")
Net()(torch.ones(1))
print(injected, caller(), [caller() for _ in range(1)], (lambda: caller())())
print(list(map(eval, ["injected"])), [*map(eval, ["caller()[0]"])], list(map(lambda n: n[:2], [stack()])))
def export(function):
    sys._getframe(1).f_globals.setdefault("__all__", []).append(function.__name__)
    return function
@export
def public(): ...
print(__all__, [f.name for f in traceback.extract_stack()][-1:])
""",
    "warnings are attributed to the program": """
import torch, warnings
def old(x):
    warnings.warn("old", DeprecationWarning, stacklevel=2)
    return x
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("default")
    for _ in range(2):
        old(torch.ones(1))
    old(torch.ones(1))
    torch.nn.functional.softmax(torch.ones(2))
    torch.nn.functional.softmax(torch.ones(2))
print([(str(w.message)[:9], w.filename == __file__, w.lineno) for w in seen])
""",
    "log records are attributed to the program": """
import logging, sys, torch
logging.basicConfig(stream=sys.stdout, format="%(funcName)s %(lineno)d %(module)s %(message)s")
log = logging.getLogger("x")
def f(x):
    log.warning("%s", torch.relu(x))
    emit = log.error
    emit("%s", x, stacklevel=2)
f(torch.ones(1))
""",
    "tracebacks": """
import torch, traceback
class Net(torch.nn.Module):
    def forward(self, x):
        return (x
                .view(1)
                .view(7))
def divide(a, b): return a / b
def item(d): return d["missing"] + 1
def place(x):
    x[9] = 1
def attribute(x): return (
    x.real
     .absent)
def grow(x):
    x @= 3
calls = (lambda: Net()(torch.ones(1)), lambda: divide(1, 0), lambda: item({}), lambda: place(torch.ones(1)),
         lambda: attribute(torch.ones(1)), lambda: grow(torch.ones(1)), lambda: len(3), lambda: "".absent,
         lambda: torch.ones(1).absent(), lambda: torch.tensor([1])[torch.ones(4)], lambda: int("x"))
for call in calls:
    try: call()
    except Exception as error:
        for f in traceback.extract_tb(error.__traceback__):
            if f.filename == __file__: print(f.name, f.lineno, f.end_lineno, f.colno, f.end_colno)
            else: print(f.filename[-20:], f.name)
""",
    "a signal's handler that raises": """
import signal, torch
def late(number, frame): raise TimeoutError("late")
signal.signal(signal.SIGALRM, late)
x, caught = torch.ones(10), 0
for _ in range(40):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.003)
        while True: x = x * 1.0
    except TimeoutError: caught += 1
print(caught)
""",
    "how deep a program may go": """
import sys, torch
def down(n): return down(n + 1)
try: down(0)
except RecursionError as error: print(error)
sys.setrecursionlimit(12000)
def f(n): return torch.zeros(1) if n == 0 else f(n - 1) + 1
print(f(10000), sys.getrecursionlimit())
""",
    "builtins by other names": """
import torch
def f():
    y = 3
    e, l, d, v = eval, locals, dir, vars
    return e("y + 1"), sorted(l()), sorted(d()), sorted(v()), list(map(eval, ["y"])), [*map(lambda n: n, l())]
print(f(), dir(), sorted(vars()), sorted(locals()), sorted(globals()))
exec("z = torch.ones(1)"); print(z, eval("z + 1"))
import builtins; print([n for n in dir(builtins) if "ml" in n])
""",
    "what imports bind, and their errors": """
import sys, types, torch
try: from torch import relu, absent, ones
except ImportError as error: print(error.msg.split(" (")[0], error.name, error.path, error.__context__, "ones" in dir())
print(relu(torch.ones(1)))
for text in ("import torch.absent", "from torch.absent import x", "import torch.absent as y"):
    try: exec(text)
    except ImportError as error: print(type(error).__name__, error, error.name)
try: import torch.absent
except ImportError as error: print(type(error).__name__, error, error.name)
class Loud(types.ModuleType):
    def __getattr__(self, name): print("asked for", name); return 42
sys.modules["torch.loud"] = Loud("torch.loud")
from torch.loud import this, that as other
sys.modules["torch.stopped"] = None
try: import torch.stopped
except ImportError as error: print(type(error).__name__, error)
real, asked = __import__, []
def noting(name, *rest):
    asked.append((name, rest[2] if len(rest) > 2 else None))
    return real(name, *rest)
import builtins; builtins.__import__ = noting
import torch.nn as nn
from torch.nn.functional import relu as r, gelu
builtins.__import__ = real
print(this, other, nn, [a for a in asked if a[0].startswith("torch.nn")])
""",
    "a star import": """
import sys, torch
def globals(): return {}
from torch.nn.functional import *
print(relu.__name__, gelu(torch.ones(1)), [n for n in dir() if n.startswith("_")])
""",
    "what a program puts in the place of Python's own": """
import builtins, marshal, os, struct, time, torch, numpy
real = builtins.open
builtins.open = lambda *args, **kwargs: print("open")
os.write = os.open = os.pwritev = os.ftruncate = marshal.dumps = struct.pack = time.monotonic = None
numpy.asarray = numpy.array = numpy.frombuffer = numpy.shares_memory = None
print(torch.ones(20000).sum() + 1, torch.relu(torch.ones(2)))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_observed_program_prints_what_it_prints_plainly(bench: Bench, tmp_path: Path, name: str) -> None:
    check_prints_the_same(bench, tmp_path, PROGRAMS[name])


# A sample of Python's own tests of the language; benchmarks/transparency.py runs all of them.
LANGUAGE = ("test_grammar", "test_scope", "test_decorators", "test_with", "test_except_star", "test_traceback")


@pytest.mark.parametrize("module", LANGUAGE)
def test_pythons_own_tests_pass_as_they_pass_unobserved(bench: Bench, tmp_path: Path, module: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(TESTS.format(module=module))
    library = discover(program)
    setting = Setting(library, dict.fromkeys(Runtime, ()), ("test",), 300.0)
    plain, observed = (
        bench.run(RunRequest(setting, Runtime.TORCH, library.probes[0], observe=observe)) for observe in (False, True)
    )
    assert int(plain.file.with_suffix(".out").read_text().split()[0]) > 0
    assert observed.file.with_suffix(".out").read_text() == plain.file.with_suffix(".out").read_text()
