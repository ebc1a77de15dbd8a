from collections.abc import Iterable
from os import PathLike
from typing import Any, Literal, NamedTuple, Self, TypeAlias, final

__all__ = ["History", "HistoryError", "MODELS", "Op", "Verdict", "check", "operations"]

_Format: TypeAlias = Literal["json", "jepsen", "jepsen-independent", "etcd"]
_Status: TypeAlias = Literal["ok", "fail", "info"]
_Limit: TypeAlias = Literal["memory", "time", "concurrency"]
# The members of an `Op`, from the first to the end, the key, or the status.
_Operation: TypeAlias = (
    tuple[int, str, Any, Any, int, int | None]
    | tuple[int, str, Any, Any, int, int | None, Any]
    | tuple[int, str, Any, Any, int, int | None, Any, str]
)

MODELS: dict[str, tuple[str, ...]]

class HistoryError(ValueError):
    """A log that is not a history, or a history that the model does not fit: what is wrong, and where."""

class Op(NamedTuple):
    """An operation: a process's call, and what came back."""

    process: int
    call: str
    argument: Any
    result: Any
    start: int
    end: int | None
    key: Any = None
    status: str = "ok"

@final
class History:
    """Operations in the order of their starts, from a list of `Op`s, a log, or a file."""

    def __new__(cls, operations: Iterable[_Operation]) -> Self: ...
    @staticmethod
    def parse(log: str | bytes, format: _Format | None = None) -> History: ...
    @staticmethod
    def load(path: str | PathLike[str], format: _Format | None = None) -> History: ...
    def show(self, index: int) -> str: ...
    def to_json(self) -> str: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Op: ...
    def __reduce__(self) -> tuple[Any, tuple[str, str]]: ...

@final
class Verdict:
    """The result of `check`."""

    def __new__(
        cls,
        linearizable: bool | None,
        order: tuple[int, ...] | None,
        failing: tuple[int, ...] | None,
        reason: str | None,
        state: str | None,
        limit: _Limit | None,
        decided: int,
        total: int,
        text: str,
    ) -> Self: ...
    def __getnewargs__(
        self,
    ) -> tuple[
        bool | None,
        tuple[int, ...] | None,
        tuple[int, ...] | None,
        str | None,
        str | None,
        _Limit | None,
        int,
        int,
        str,
    ]: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __bool__(self) -> bool: ...
    @property
    def linearizable(self) -> bool | None: ...
    @property
    def order(self) -> tuple[int, ...] | None: ...
    @property
    def failing(self) -> tuple[int, ...] | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def state(self) -> str | None: ...
    @property
    def limit(self) -> _Limit | None: ...
    @property
    def decided(self) -> int: ...
    @property
    def total(self) -> int: ...

def check(
    operations: History | Iterable[_Operation],
    model: str,
    *,
    seconds: float | None = None,
    memory_bytes: int = 1073741824,
    explain: bool = True,
) -> Verdict:
    """Decides whether operations are linearizable."""

def operations(events: Iterable[tuple[int, str, str, Any]]) -> list[Op]:
    """Pairs events, given in their order, to operations."""
