"""Programs, in; rewritten, they must do what they do as they stand: results, output, exceptions and their lines."""

from __future__ import annotations

import ast
import importlib.util
import sys
import sysconfig
from pathlib import Path

import pytest
from core_fakes import Tensor, calls, plain, rewritten
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from migrate_lens.worker import nodes

PROGRAMS = {
    "star args": "def f(*a, **k): return a, k\nx = [1, 2]\nresult = f(0, *x, 3, *x, a=1, **{'b': 2}, c=3, **{'d': 4})",
    "keywords named like the helpers' own": (
        "def f(**k): return k\nclass A:\n    def f(self, **k): return k\n"
        "result = f(number=1, func=2, base=3, attribute=4, name=5), A().f(number=1, base=2, attribute=3, self_=4)"
    ),
    "walrus": "result = [y := 1, y ** 2, (z := 3) + z, [w := v for v in range(3)], w]",
    "comprehensions": (
        "class A:\n    xs = [1, 2, 3]\n    ys = [x.real + x for x in xs]\n"
        "result = A.ys, {x: -x for x in A.xs if x.real > 1}, {x % 2 for x in A.xs}, sum(x for y in [A.xs] for x in y)"
    ),
    "lambdas": "f = lambda x, *a, y=(lambda: 3)(), **k: (x, a, y, k)\nresult = f(1, 2, z=3), (lambda: f)()(0)",
    "nested functions": (
        "def f(n):\n    x = n\n    def g():\n        nonlocal x\n        x += 1\n        return lambda: x\n"
        "    return g()() + g()()\nresult = f(1)"
    ),
    "class bodies": (
        "x = 5\nclass A:\n    x = x + 1\n    x += 1\n    def f(self, x=x): return x\n    y = f(None)\nresult = A.x, A.y, A().f()"
    ),
    "mangled names": (
        "class A:\n    __x = 3\n    def f(self):\n        self.__x += 1\n        self.__d = {}\n        self.__d['a'] = [1]\n"
        "        self.__d['a'] += [2]\n        return self.__x, self.__g(), A.__x, self.h(__z=1), self.__d\n"
        "    def __g(self): return self.__x.real\n    def h(self, **k): return k\nresult = A().f()"
    ),
    "super": (
        "class A:\n    tag = 'a'\n    def __init__(self, x): self.x = x\n    def f(self): return 'A' + self.x\n"
        "class B(A):\n    tag = 'b'\n    def __init__(self, x): super().__init__(x + '!')\n"
        "    def f(self): return 'B' + super().f() + super().tag + super(B, self).f() + __class__.tag\nresult = B('x').f()"
    ),
    "decorators": (
        "def deco(n):\n    def wrap(f):\n        def inner(*a): return (n, f(*a))\n        return inner\n    return wrap\n"
        "class A:\n    @staticmethod\n    @deco(1)\n    def s(x): return x\n    @classmethod\n    def c(cls): return cls.__name__\n"
        "    @property\n    def p(self): return self._p\n    @p.setter\n    def p(self, v): self._p = v * 2\n"
        "a = A()\na.p = 4\na.p += 1\n@deco(2)\n@deco(3)\ndef f(x): return x\nresult = A.s(1), A.c(), a.p, f(9)"
    ),
    "async": (
        "import asyncio\nasync def g(x):\n    await asyncio.sleep(0)\n    return x\nasync def h():\n    for i in range(3):\n"
        "        yield i\nclass M:\n    async def __aenter__(self): return 7\n    async def __aexit__(self, *a): return False\n"
        "async def f():\n    async with M() as m:\n        return [await g(i) async for i in h()] + [await g(await g(m))]\n"
        "result = asyncio.run(f())"
    ),
    "generators": (
        "def g():\n    x = yield 1\n    y = f((yield x), *(yield from h()))\n    return y\ndef f(v, *w): return v * 2, w\n"
        "def h():\n    yield 'h'\n    return [1, 2]\nit = g()\nresult = [next(it), it.send(5), it.send(7)]\n"
        "try:\n    next(it)\nexcept StopIteration as e:\n    result.append(e.value)"
    ),
    "match": (
        "class P:\n    __match_args__ = ('x', 'y')\n    def __init__(self, x, y): self.x, self.y = x, y\nclass K: ONE = 1\n"
        "def f(v):\n    match v:\n        case K.ONE | -2: return 'one'\n        case {'a': [x, *rest], **more} if len(rest) > x: return x, rest, more\n"
        "        case P(x, y=0): return x.real\n        case [P(x=1), _] as w: return len(w)\n        case str() | None: return 's'\n"
        "        case _: return f(1)\nresult = [f(v) for v in (1, -2, {'a': [1, 2, 3], 'b': 0}, P(5, 0), [P(1, 2), 0], 'x', None, 9.5)]"
    ),
    "f-strings": (
        "x = 'abc'\nw = 6\nresult = f'{x.upper()} {x.upper()!r:>{w + 1}} {x=} {x[1:]:{w}} {{}} {w:#x}' f'{-w}' rf'\\{w + w}', f'''\n"
        "{x.title()}\n  {x.title() + \n x}'''"
    ),
    "slices": (
        "class A:\n    def __getitem__(self, i): return i\n    def __class_getitem__(cls, i): return ('c', i)\na, i = A(), (0, 1)\n"
        "result = [a[1], a[1:2], a[::], a[:, 1:2, 3], a[*i], a[*i, 1:2], a[..., None], a[()], a[-1], a[a[1]:a[2]:a[3]],\n"
        "          a[1,], a[1:2,], A[int], a['x':'y'], a[lambda: 1] is None, [1, 2, 3][-2:], 'abc'[::-1], {1: 2}[1]]\n"
        "del result[0:3:2], result[0]"
    ),
    "a variable named slice": "def f(x, slice, globals=None): return x[1:2], slice\nresult = f([1, 2, 3], 'mine')",
    "chained comparisons": (
        "log = []\ndef v(x):\n    log.append(x)\n    return x\n"
        "result = v(1) < v(2) < v(3), v(3) < v(2) < v(1), v(1) == v(1), v(2) is not v(3) in [v(3)], not v(1) != v(1), log"
    ),
    "augmented assignment, once and in order": (
        "log = []\nclass A:\n    def __init__(self): self.d = {0: 1}\n    def __getitem__(self, i):\n        log.append(('get', i))\n"
        "        return self.d.get(i, 5)\n    def __setitem__(self, i, v): log.append(('set', i, v))\n"
        "    def __getattr__(self, n):\n        log.append(('read', n))\n        return 1\n"
        "    def __setattr__(self, n, v):\n        log.append(('write', n))\n        super().__setattr__(n, v)\n"
        "def t(x):\n    log.append(x)\n    return x\na = A()\n"
        "t(a)[t(1):t(2)] += t(3)\nt(a)[t(0), ...] *= t(3)\nt(a).q -= t(4)\nt(a).q -= t(4)\nresult = [x if x is not a else 'a' for x in log]"
    ),
    "augmented assignment whose operand changes its target": (
        "class A:\n    x = 1\n    def g(self):\n        self.x = 10\n        return 5\n    def h(self):\n        self.x += self.g()\n"
        "        return self.x\nd = {'a': 1}\ndef g():\n    d['a'] = 10\n    return 5\nd['a'] += g()\nn = 1\ndef k():\n    global n\n    n = 10\n"
        "    return 5\nn += k()\nresult = A().h(), d, n"
    ),
    "augmented assignment of every kind": (
        "x = 7\nx += 1\nx -= 2\nx *= 5\nx //= 4\nx **= 2\nx %= 30\nx <<= 3\nx >>= 1\nx |= 3\nx &= 14\nx ^= 5\ny = x\ny /= 2\n"
        "class M:\n    def __matmul__(self, o): return o\nm = M()\nm @= 4\na = b = [1]\na += (2,)\nresult = x, y, m, a, a is b"
    ),
    "a method is looked up before its arguments are evaluated": (
        "log = []\nclass S:\n    def __getattr__(self, n):\n        log.append(n)\n        return lambda *a: self\n"
        "class T:\n    def __init__(self): self.f = lambda x: ('old', x)\n    def prepare(self):\n        self.f = lambda x: ('new', x)\n        return 1\n"
        "def g(x):\n    log.append(x)\n    return x\nt = T()\nS().foo(g(1)).bar(g(2), *g([3]))\nresult = log, t.f(t.prepare()), t.f(0), 'x'.join(g(['a', 'b']))"
    ),
    "global": "def f():\n    global q, r\n    q = 1\n    q += 2\n    r = [q]\n    r[0] += 1\nf()\nresult = q, r",
    "unbound local": "x = 1\ndef f():\n    x += 1\nf()",
    "try": (
        "log = []\ndef f(x):\n    try:\n        log.append('body')\n        return 1 / x\n    except (ZeroDivisionError, TypeError) as e:\n"
        "        log.append(type(e).__name__)\n        raise ValueError('v') from e\n    else:\n        log.append('else')\n    finally:\n"
        "        log.append('finally')\nf(2)\ntry:\n    f(0)\nexcept ValueError as e:\n    result = log, str(e), repr(e.__cause__), e.__context__ is e.__cause__"
    ),
    "except*": (
        "result = []\ntry:\n    try:\n        raise ExceptionGroup('x', [ValueError(1), TypeError(2)])\n    except* ValueError as e:\n"
        "        result.append(repr(e.exceptions))\nexcept* TypeError as e:\n    result.append(repr(e.exceptions))"
    ),
    "an exception raised in a handler": "try:\n    [].x\nexcept AttributeError as e:\n    assert e.name == 'x' and e.obj == []\n    raise\n",
    "a bare raise keeps what is handled": (
        "import sys\ndef look(): return sys.exc_info()[0]\nresult = [look()]\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    result.append(look())\n"
        "result.append(look())"
    ),
    "annotations": (
        "class A:\n    x: int = 1\n    y: 'A' = None\n    z: list[int]\n    def f(self, a: int | None, *b: str, c: dict[str, int] = {}, **d: 'A') -> list[A]\\\n"
        "            if False else A.x: return 1\nw: A.x.real = 3\nA.q: int = 4\nresult = A.__annotations__, A.f.__annotations__, __annotations__"
        ", A.q"
    ),
    "annotations that are strings": (
        "'doc'\nfrom __future__ import annotations\nclass A:\n    x: Foo.bar = 1\n    def f(self, a: Nope[1]) -> Bar(): return 1\n"
        "result = A.__annotations__, A.f.__annotations__, __doc__"
    ),
    "star imports": "from os.path import *\nfrom string import *\nresult = join('a', 'b'), digits",
    "future": "from __future__ import division, generator_stop\nresult = 1 / 2",
    "docstrings": "def f():\n    'doc'\n    return 1\nclass A:\n    'also'\n    def f(self): 'third'\nresult = f.__doc__, A.__doc__, A.f.__doc__",
    "dataclasses": (
        "from dataclasses import dataclass, field, replace, asdict\nimport dataclasses\n@dataclass(frozen=True, order=True)\nclass A:\n    x: int\n"
        "    y: list[int] = field(default_factory=list)\n    def double(self): return replace(self, x=self.x * 2)\n@dataclasses.dataclass\nclass B:\n"
        "    x: int = 3\n    z: int = 0\n    def __post_init__(self): self.z += self.x + 1\n"
        "result = A(1).double(), A(1) < A(2), asdict(A(1, [2])), A.__annotations__, B(), B(1) == B(1)"
    ),
    "enums": (
        "import enum\nfrom enum import Enum, auto\nclass E(Enum):\n    A = auto()\n    B = auto()\n    C = A\n    def f(self): return self.value + 1\n"
        "class F(enum.Flag):\n    X = 1\n    Y = X << 1\n    Z = X | Y\nresult = list(E), E(1).f(), E['B'].name, F.X | F.Y, F.Z in F.Z, E.A is E.C"
    ),
    "named tuples survive pickling": (
        "import pickle, collections, typing\nP = collections.namedtuple('P', 'a b')\nclass Q(typing.NamedTuple):\n    a: int\n    b: str = 'x'\n"
        "R = typing.NamedTuple('R', [('a', int)])\n"
        "result = [pickle.loads(pickle.dumps(v)) for v in (P(1, 2), Q(1), R(5))], P.__module__, Q(1)._replace(b='y'), P(1, 2) + P(3, 4)"
    ),
    "slots": (
        "class A:\n    __slots__ = ('x', '__y')\n    def __init__(self): self.x, self.__y = 1, 2\n    def f(self):\n        self.x += self.__y\n"
        "        return self.x, hasattr(self, '__dict__')\nresult = A().f(), A.__slots__"
    ),
    "exec, eval and locals": (
        "exec('q = 3')\ndef f(y):\n    z = y + 1\n    return locals(), eval('y + z'), sorted(vars()), dir()\nresult = q, f(1), eval('q.real'), 'q' in globals()"
    ),
    "assignments": (
        "a = b = [0, 0]\nresult = a[0] = 5\nx, a[1], *y = 1, 2, 3, 4\n(a[0], c) = (c, d) = 7, 8\nfor a[0] in range(3): pass\n"
        "with open(__import__('os').devnull) as a[1]: pass\ndel c, a[1]\nresult = a, b is a, x, y, d"
    ),
    "assignment evaluates its value first": (
        "log = []\ndef t(x):\n    log.append(x)\n    return x\nd = {}\nt(d)[t(1)] = t(2)\nt(d)[t(3)] = t(d)[t(1)]\nresult = [x if x is not d else 'd' for x in log], d"
    ),
    "percent formatting": "s, t = '%d-%d', b'%d'\nresult = s % (1, 2), '%s' % 3, f'{s}' % (1, 2), t % 5, '{}'.format(4), 'a' + 'b' * 3",
    "metaclasses": (
        "class M(type):\n    @classmethod\n    def __prepare__(m, n, b, k=0): return {'k': k}\n    def __new__(m, n, b, ns, k=0): return super().__new__(m, n, b, ns)\n"
        "    def __init__(c, n, b, ns, k=0): super().__init__(n, b, ns)\n    def __getattr__(c, n): return n\n    def __call__(c, *a): return (c.k, a)\n"
        "class A(metaclass=M, k=3): y = k + 1\nresult = A.y, A.foo, A(1)"
    ),
    "an object that answers every name by a key": (
        "class C:\n    def __init__(self): self.d = {}\n    def __getattr__(self, k): return self.__dict__['d'][k]\n    def __call__(self, x): return x\nresult = C()(3)"
    ),
    "descriptors and operators of its own": (
        "class V:\n    def __init__(self, x): self.x = x\n    def __add__(self, o): return NotImplemented\n    def __radd__(self, o): return ('r', o)\n"
        "    def __neg__(self): return 'n'\n    def __invert__(self): return 'i'\n    def __pos__(self): return 'p'\n    def __eq__(self, o): return 'eq'\n"
        "    def __lt__(self, o): return NotImplemented\n    def __contains__(self, x): return x == 1\n    def __bool__(self): return False\n"
        "v = V(1)\nresult = 1 + v, -v, ~v, +v, v == v, v != 1, 1 in v, not v, 1 if v else 2, v or 3, 2 ** 3, 7 @ v if False else 0\nv + 1"
    ),
    "context managers": (
        "import contextlib\n@contextlib.contextmanager\ndef c(x):\n    try:\n        yield x\n    except KeyError as e:\n        print('caught', e)\n"
        "with c(1) as a, c(2) as b:\n    raise KeyError(a + b)\nwith (c(3) as d, contextlib.suppress(ValueError)): int('x')\nresult = a, b, d"
    ),
    "functools": (
        "import functools\nfrom functools import partial, wraps\n@functools.lru_cache(None)\ndef f(x): return x\ndef d(g):\n    @wraps(g)\n"
        "    def w(*a): return g(*a)\n    return w\n@d\ndef h(x, *, y=1): 'doc'; return x + y\n@functools.singledispatch\ndef s(x): return 'o'\n"
        "@s.register\ndef _(x: int): return 'i'\n"
        "result = f(1), f(1), f.cache_info(), h(1), h.__name__, h.__doc__, partial(pow, 2)(3), functools.reduce(lambda a, b: a + b, [1, 2]), s(1), s('')"
    ),
    "signatures": "import inspect\ndef f(a, /, b, *, c=1, **d): ...\nresult = str(inspect.signature(f)), inspect.getfullargspec(f).args",
    "star expressions": "def f(): return 1, *[2, 3]\na, *b = f()\nresult = [*a.__class__.__mro__][-1], [*b, *b], {**{'x': 1}}, (*b,)",
    "conditional imports": "try:\n    import no_such_module_at_all as m\nexcept ImportError as e:\n    m = e.name\nfrom os import path as p, sep\nimport os.path, sys as s\nresult = m, p is os.path, sep, s.argv is not None",
    "loops": "result = []\nfor i in range(5):\n    if i == 1: continue\n    if i == 4: break\n    result.append(i)\nelse:\n    result.append('else')\nwhile result[-1] < 5:\n    result[-1] += 1\nelse:\n    result += ['done']",
    "a form feed": "\x0cx = 1\ny = x.real\n\x0c\ndef f():\n    return y.nope\nf()",
    "deletion": "class A:\n    def __delattr__(self, n): print('del', n)\n    def __delitem__(self, i): print('del', i)\na = A()\ndel a.x, a[1:2], a[a.__class__]\n",
    "assertions": "x = 3\nassert x.real == 3, 'no'\nassert x.real == 4, f'{x.real}'",
    "missing attribute": "x = 1\n\nx.foo\n",
    "missing method": "class A: pass\ndef f():\n    return A().b(1)\n\nf()",
    "missing attribute of a chain": "class A: pass\nA.b = A()\nA().b.c.d(1)",
    "an expression over several lines": "def f():\n    a = 1\n    b = (a +\n      'x')\nf()\n",
    "an index over several lines": "x = [1, 2]\nx[\n 5\n]\n",
    "a call over several lines": "def g(*a):\n    return 1 / 0\ndef f():\n    return g(\n        1,\n        2,\n    )\nf()\n",
    "undefined name": "def f():\n    return undefined_name(1)\nf()",
    "calling what cannot be called": "f = 3\nf(1)",
    "too few arguments": "def f(a): return a\nf()",
    "a keyword given to the wrong function": "def f(a): return a\nf(b=1)",
    "an item assignment that fails": "x = ()\nx[\n    0] = 1",
    "an in-place operator that fails": "x = [1]\nx[0] += \\\n  'a'",
    "exit": "import sys\nsys.exit(3)",
    "keyboard interrupt": "def f(): raise KeyboardInterrupt\nf()",
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rewritten_program_behaves_like_the_program(name: str, tmp_path: Path) -> None:
    source = PROGRAMS[name]
    assert rewritten(source, tmp_path).behaviour == plain(source)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_place_is_one_of_a_kind_and_names_its_source(name: str) -> None:
    done = nodes.rewrite(PROGRAMS[name], "<program>", 1)
    keys = [node[:5] for node in done.nodes]
    assert len(set(keys)) == len(keys)
    lines = PROGRAMS[name].split("\n")
    for node in done.nodes:
        assert 1 <= node.line <= node.end_line <= len(lines)


def test_the_text_of_a_place_is_its_source() -> None:
    source = "x = 'é'\n\x0c\ny = x.upper().lower()\nz = y[0:1]\nz += y\n"
    texts = {(n.kind, n.text) for n in nodes.rewrite(source, "<program>", 1).nodes}
    assert texts == {("m", "x.upper()"), ("m", "x.upper().lower()"), ("o", "y[0:1]"), ("i", "z += y")}


LIBRARY = ("argparse", "dataclasses", "enum", "functools", "typing", "inspect", "ast", "asyncio/tasks", "unittest/mock", "turtle", "pickle", "tarfile")


@pytest.mark.parametrize("name", LIBRARY)
def test_real_modules_are_rewritten_and_compile(name: str) -> None:
    path = Path(sysconfig.get_path("stdlib")) / f"{name}.py"
    if not path.is_file():  # an interpreter without this module has nothing to show
        path = Path(ast.__file__)
    done = nodes.rewrite(importlib.util.decode_source(path.read_bytes()), str(path), 1)
    compile(done.tree, str(path), "exec", dont_inherit=True)
    keys = [node[:5] for node in done.nodes]
    assert len(keys) > 50
    assert len(set(keys)) == len(keys)


# -- programs made at random ---------------------------------------------------------------------------------------

SPY = """
log = []

class Spy:
    def __init__(self, name): self.__dict__['name'] = name
    def _note(self, what):
        log.append(f'{self.name} {what}')
        return Spy(self.name)
    def __getattr__(self, n):
        if n.startswith('__'): raise AttributeError(n)
        if n == 'absent': raise AttributeError(n)
        return self._note(f'.{n}')
    def __setattr__(self, n, v): self._note(f'.{n} =')
    def __call__(self, *a, **k): return self._note(f'({len(a)}, {sorted(k)})')
    def __getitem__(self, i): return self._note(f'[{shown(i)}]')
    def __setitem__(self, i, v): self._note(f'[{shown(i)}] =')
    def __bool__(self):
        log.append(f'{self.name} bool')
        return len(log) % 2 == 0
    def __iter__(self):
        log.append(f'{self.name} iter')
        return iter([Spy(self.name), Spy(self.name)])
    def keys(self):
        log.append(f'{self.name} keys')
        return ['p', 'q']

def shown(i):
    if isinstance(i, slice): return ':'.join(shown(p) for p in (i.start, i.stop, i.step))
    if isinstance(i, tuple): return ','.join(map(shown, i))
    return getattr(i, '__dict__', {}).get('name', '-')

def _operator(n): return lambda self, *o: self._note(n)
for _n in 'add sub mul truediv floordiv mod pow matmul lshift rshift and or xor lt le gt ge eq ne'.split():
    setattr(Spy, f'__{_n}__', _operator(_n))
    if _n not in ('lt', 'le', 'gt', 'ge', 'eq', 'ne'): setattr(Spy, f'__i{_n}__', _operator('i' + _n))
for _n in ('neg', 'pos', 'invert'): setattr(Spy, f'__{_n}__', _operator(_n))
Spy.__hash__ = lambda self: 1
a, b, c = Spy('a'), Spy('b'), Spy('c')
""".lstrip()

BINARY = st.sampled_from("+ - * / // % ** @ << >> & | ^ < <= > >= == != and or".split())


def _expressions() -> SearchStrategy[str]:
    names = st.sampled_from(["a", "b", "c", "1", "'s'"])
    return st.recursive(names, _larger, max_leaves=8)


def _larger(e: SearchStrategy[str]) -> SearchStrategy[str]:
    index = st.one_of(
        e, st.builds("{}:{}".format, e, e), st.builds("{}:{}:{}".format, e, e, e), st.builds("{}, {}:".format, e, e),
        st.builds("*a, {}".format, e),
    )  # fmt: skip
    return st.one_of(
        st.builds("({} {} {})".format, e, BINARY, e),
        st.builds("({} < {} <= {})".format, e, e, e),
        st.builds("({}{})".format, st.sampled_from(["-", "+", "~", "not "]), e),
        st.builds("a.f({}, *{}, k={})".format, e, e, e),
        st.builds("{}.m({}, {})".format, st.sampled_from(["a", "b.x", "c.f(a)", "a[b]"]), e, e),
        st.builds("b({}, **a, z={})".format, e, e),
        st.builds("c.{}".format, st.sampled_from(["x", "y.z", "absent", "x.absent"])),
        st.builds("a[{}]".format, index),
        st.builds("({} if {} else {})".format, e, e, e),
        st.builds("[{} for i in {} if {}]".format, e, st.sampled_from(["a", "b.x"]), e),
        st.builds("(lambda q, r={}: {})({})".format, e, e, e),
        st.builds("(w := {})".format, e),
        st.builds("f'{{{}}}{{({})!r}}'".format, st.sampled_from(["shown(a.x)", "shown(b[c])"]), st.sampled_from(["shown(a.x)", "1"])),
        st.builds("[{}, *{}]".format, e, st.sampled_from(["a", "b.x", "[c]"])),
    )  # fmt: skip


def _statements() -> SearchStrategy[str]:
    e = _expressions()
    augmented = st.sampled_from("+ - * / // % ** @ << >> & | ^".split())
    target = st.one_of(
        st.sampled_from(["a", "b", "a.x", "b.x.y", "c.f(a).x"]),
        st.builds("a[{}]".format, e),
        st.builds("b.x[{}:{}]".format, e, e),
        st.builds("c[{}, ...]".format, e),
    )
    return st.one_of(
        st.builds("{} {}= {}".format, target, augmented, e),
        st.builds("{} = {}".format, target, e),
        st.builds("a[{}] = b.x = {}".format, e, e),
        st.builds("{}".format, e),
        st.builds("for a.i in [{}]: {}".format, e, e),
        st.builds("try:\n    {}\nexcept (AttributeError, TypeError) as error:\n    log.append(type(error).__name__)".format, e),
    )


@given(st.lists(_statements(), min_size=1, max_size=4))
def test_any_program_does_the_same_things_in_the_same_order(tmp_path_factory: pytest.TempPathFactory, body: list[str]) -> None:
    source = SPY + "\n".join(body) + "\nresult = log\n"
    assert rewritten(source, tmp_path_factory.mktemp("traces")).behaviour == plain(source)
