"""Millstream for Python.

`millstream.csm` decides with evidence: confidence sequences, exact tests and stopping rules whose errors are on the safe
side.
"""

from . import csm
from .csm import __version__ as __version__

__all__ = ["csm"]
