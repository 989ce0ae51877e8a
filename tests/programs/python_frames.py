# SPDX-License-Identifier: Apache-2.0
"""Makes allocation events in every kind of frame and writes down, from sys._getframe, what each one's
Python stack is: {size of the event: [[file, function, line], ...] innermost first}. Runs on any Python
from 3.9; usage: python_frames.py TRUTH.json"""
import asyncio
import contextlib
import ctypes
import functools
import gc
import itertools
import json
import sys
import threading
import types

released = ctypes.CDLL(None)  # the GIL is released during the call
held = ctypes.PyDLL(None)
sizes = itertools.count(4096)
truth = {}


def note(frame):
    size = next(sizes)
    stack = []
    while frame:
        code = frame.f_code
        stack.append([code.co_filename, getattr(code, "co_qualname", code.co_name), frame.f_lineno])
        frame = frame.f_back
    truth[size] = stack
    return ctypes.c_size_t(size)


def call(lib):
    p = ctypes.c_void_p()
    lib.cudaMalloc(ctypes.byref(p), note(sys._getframe()))


def both():
    call(released)
    call(held)


def recurse(n):
    if n:
        recurse(n - 1)
    else:
        both()


class Shape:
    def method(self):
        both()

    @property
    def prop(self):
        both()

    @classmethod
    def klass(cls):
        (lambda: both())()

    def __call__(self, x):
        call(released)
        return x

    def __del__(self):
        both()


def generator(n):
    for _ in range(n):
        both()
        yield 1


def delegating():
    yield from generator(2)


async def coroutine():
    both()
    await asyncio.sleep(0)
    both()


async def gathered():
    await asyncio.gather(coroutine(), coroutine())


@contextlib.contextmanager
def manager():
    both()
    yield
    both()


def resumed_elsewhere(gen):
    next(gen)


def from_c():
    sorted([3, 1, 2], key=Shape())
    list(map(Shape(), range(3)))
    functools.partial(functools.partial(call, released))()
    callback = ctypes.CFUNCTYPE(None)(both)
    callback()
    [both() for _ in range(2)]
    dict((k, both()) for k in range(2))


def bound(lib, between=None):
    frame = sys._getframe()
    lib.toy_binding(note(frame), note(frame), between and ctypes.CFUNCTYPE(None)(between), note(frame))


def one_way():
    call(released)


def other_way():
    call(released)


def ways():
    one_way()
    other_way()
    recurse(2)


def bindings():
    for lib in (released, held):
        for _ in range(2):
            bound(lib)
            bound(lib, one_way)
            bound(lib, other_way)
            bound(lib, ways)
            bound(lib, lambda: bound(lib, ways))
            bound(lib, lambda: [bound(lib), one_way(), bound(lib, Shape().method), other_way()])
            list(map(lambda _: bound(lib, ways), range(2)))


def many_lines():
    both(
    ), both(
        *()
    )
    try:
        raise ValueError
    except ValueError:
        both()
    finally:
        with manager():
            both()


def long_function():
    """More than 256 bytes of code between two lines, and lines far apart."""
    body = "def long():\n" + "    x = 1 + " + " + ".join("y%d" % i for i in range(300)) + "\n" * 200
    body += "    both(); y = [%s]\n    both()\n" % ", ".join("x" for _ in range(400)) + "long()\n"
    scope = {"y%d" % i: i for i in range(300)}
    exec(compile(body, "<long>", "exec"), dict(scope, both=both))


def compiled(n):
    """Code objects that are dropped at once, so that the next ones lie where they lay."""
    for i in range(n):
        source = "\n" * (i % 7) + "def made_%d():\n%s    both()\nmade_%d()" % (i % 11, "\n" * (i % 5), i % 11)
        exec(compile(source, "<é %d>" % (i % 3), "exec"), {"both": both})


def replaced(n):
    def original():
        both()
    for i in range(n):
        code = original.__code__.replace(co_name="name_%d" % (i % 50), co_firstlineno=i % 30 + 1)
        if hasattr(code, "co_qualname"):
            code = code.replace(co_qualname="name_%d" % (i % 50))
        types.FunctionType(code, globals())()
        del code


def scenarios():
    recurse(3)
    recurse(400)
    Shape().method()
    Shape().prop
    Shape.klass()
    list(generator(2)), list(delegating())
    gen = generator(3)
    next(gen)
    resumed_elsewhere(gen)
    threading.Thread(target=resumed_elsewhere, args=(gen,)).start()
    asyncio.run(gathered())
    from_c()
    bindings()
    many_lines()
    long_function()
    shape = Shape()
    shape.me = shape
    del shape
    gc.collect()


def in_threads():
    stop = threading.Event()

    def spin():
        while not stop.is_set():
            sum(range(50))

    spinner = threading.Thread(target=spin)
    spinner.start()
    threads = [threading.Thread(target=lambda: [recurse(i % 9) for i in range(20)]) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    stop.set()
    spinner.join()


sys.setrecursionlimit(3000)
scenarios()
in_threads()
compiled(150)
replaced(150)
if "deep" in sys.argv:
    recurse(1500)
with open(sys.argv[1], "w") as f:
    json.dump(truth, f)
