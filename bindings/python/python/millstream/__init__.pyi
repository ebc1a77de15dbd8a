from . import csm as csm, history as history, slab as slab

__version__: str
__all__ = ["csm", "history", "slab"]
