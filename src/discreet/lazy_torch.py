"""torch, imported when it is first used, so that accounting and the catalog of recipes need no torch at all.

A file that imports torch from here writes `from __future__ import annotations`, since an annotation such as
`torch.Generator` would import torch when the function is defined. At run time `Tensor` is a name for annotations only;
in `isinstance`, write `torch.Tensor`.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from discreet.extras import import_library

if TYPE_CHECKING:
    import torch as torch
    from torch import Tensor as Tensor
    from torch import nn as nn
    from torch.nn import functional as functional
else:

    class _LazyModule(ModuleType):
        """A module that is imported when its first attribute is read."""

        def __getattr__(self, name: str) -> Any:
            module = sys.modules.get(self.__name__)
            if module is None or getattr(module.__spec__, "_initializing", False):  # another thread may import it
                module = import_library(self.__name__)
            return getattr(module, name)

    torch, nn, functional = (_LazyModule(name) for name in ("torch", "torch.nn", "torch.nn.functional"))
    Tensor = Any
