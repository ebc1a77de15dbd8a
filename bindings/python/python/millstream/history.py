"""Check whether the operations of a test are linearizable: whether each can have taken effect at one moment between its
start and its end.

Which one do I want?

- to check operations of a program: a list of `Op`, and `check`
- to check a log of events, invocations and returns in their order: `operations`, then `check`
- to check a file of JSON lines, of Jepsen or of etcd: `History.load`, then `check`
- to know the objects that can be checked, and their operations: `MODELS`

>>> from millstream.history import Op, check
>>> verdict = check(
...     [
...         Op(process=0, call="enqueue", argument=1, result=None, start=0, end=10),
...         Op(process=0, call="enqueue", argument=2, result=None, start=20, end=30),
...         Op(process=1, call="dequeue", argument=None, result=2, start=40, end=50),
...         Op(process=1, call="dequeue", argument=None, result=1, start=60, end=70),
...     ],
...     "queue",
... )
>>> verdict.linearizable
False
>>> verdict.failing
(0, 1, 2)
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ._native import History, HistoryError, Verdict, check, models

__all__ = ["History", "HistoryError", "MODELS", "Op", "Verdict", "check", "operations"]

MODELS: dict[str, tuple[str, ...]] = models()
"""The models of `check`, and the names of their operations."""


class Op(NamedTuple):
    """An operation: a process's call, and what came back. A plain tuple of the same members, in this order, will do.

    Arguments, results and keys are None, bools, ints, strs, and lists or tuples of these. Times are ints in any unit, such
    as time.monotonic_ns().
    """

    process: int
    """The number of the process or thread, which has one operation at a time."""
    call: str
    """The name of the operation, one of those in MODELS."""
    argument: Any
    """The argument; None if there is none."""
    result: Any
    """The result; None if there is none, or if a container was empty."""
    start: int
    """The time of the call."""
    end: int | None
    """The time of the return; None if the operation has not returned."""
    key: Any = None
    """The object, in a history of several objects; each object is checked alone."""
    status: str = "ok"
    """"ok"; "fail" if it certainly had no effect; "info" if its outcome is unknown."""


def operations(events: Iterable[tuple[int, str, str, Any]]) -> list[Op]:
    """Pairs events, given in their order, to operations, in the order of their invocations.

    An event is a tuple (process, type, call, value). The types are those of Jepsen: "invoke" with the argument as value,
    then "ok" with the result, "fail" if the operation certainly had no effect, or "info" if its outcome is unknown.
    Operations without a second event have not returned. The position of an event is its time.

    >>> operations([(0, "invoke", "write", 7), (1, "invoke", "read", None), (1, "ok", "read", 7)])
    [Op(process=0, call='write', argument=7, result=None, start=0, end=None, key=None, status='ok'), \
Op(process=1, call='read', argument=None, result=7, start=1, end=2, key=None, status='ok')]
    """
    paired: list[Op] = []
    pending: dict[int, int] = {}
    for time, (process, kind, call, value) in enumerate(events):
        if kind == "invoke":
            if process in pending:
                raise HistoryError(
                    f"event {time}: process {process} called {call!r} while its {paired[pending[process]].call!r} had "
                    "not returned; a process that gives up waiting must go on under another number"
                )
            pending[process] = len(paired)
            paired.append(Op(process, call, value, None, time, None))
            continue
        if kind not in ("ok", "fail", "info"):
            raise HistoryError(f"event {time}: expected type 'invoke', 'ok', 'fail' or 'info', found {kind!r}")
        if process not in pending:
            raise HistoryError(f"event {time}: process {process} returned from an operation that it had not called")
        begun = pending.pop(process)
        if paired[begun].call != call:
            raise HistoryError(
                f"event {time}: process {process} returned from {call!r}, but had called {paired[begun].call!r}"
            )
        result = value if kind == "ok" else None
        paired[begun] = paired[begun]._replace(result=result, end=time, status=kind)
    return paired
