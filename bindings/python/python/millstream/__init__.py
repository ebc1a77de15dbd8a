"""Millstream for Python.

- `millstream.csm` decides with evidence: confidence sequences, exact tests and stopping rules whose errors are on the safe
  side.
- `millstream.history` checks whether what the threads of a test saw is linearizable.
- `millstream.slab` shares objects between processes, as numpy arrays without a copy, and keeps them through `kill -9`.
"""

from . import csm, history, slab
from ._native import __version__ as __version__

__all__ = ["csm", "history", "slab"]
