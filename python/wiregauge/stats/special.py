"""The special functions used here: those of `scipy.special`, and the transforms of `scipy.fft`.

They are taken from the compiled modules behind these packages. The packages themselves wrap them for other array
libraries, which imports a third of NumPy that nothing here uses: a quarter of a second before anything is computed.
Where a version of SciPy has them elsewhere, the packages are imported.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "bdtr",
    "bdtrc",
    "bdtrik",
    "betaincinv",
    "chdtri",
    "compiled",
    "cosine_transform",
    "gammaln",
    "ndtr",
    "ndtri",
    "stdtr",
    "stdtrit",
]


def compiled(package: str, module: str) -> ModuleType | None:
    """A module of a package in `scipy`, without the imports of the packages around it; None where there is none."""
    name = f"{package}.{module}"
    stands: list[str] = []
    folder = Path(importlib.import_module("scipy").__path__[0])
    around = ""
    for part in package.split("."):
        around = f"{around}.{part}".lstrip(".")
        folder = folder if around == "scipy" else folder / part
        if around not in sys.modules:
            # Stands in for the package while its module imports its siblings.
            sys.modules[around] = ModuleType(around)
            sys.modules[around].__path__ = [str(folder)]
            stands.append(around)
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
    finally:
        for each in stands:
            del sys.modules[each]


def _function(name: str) -> Any:
    if _UFUNCS is None or not hasattr(_UFUNCS, name):
        return getattr(importlib.import_module("scipy.special"), name)
    return getattr(_UFUNCS, name)


def cosine_transform(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The orthonormal cosine transform (DCT-II) of each row: `scipy.fft.dct(rows, norm="ortho", axis=1)`."""
    if _TRANSFORMS is None or not hasattr(_TRANSFORMS, "dct"):
        found = importlib.import_module("scipy.fft").dct(rows, norm="ortho", axis=1)
    else:
        found = _TRANSFORMS.dct(rows, 2, (1,), _ORTHONORMAL)
    return np.asarray(found)


_ORTHONORMAL: Final = 1
"""The code of the orthonormal norm in the compiled module."""
_TRANSFORMS: Final = compiled("scipy.fft._pocketfft", "pypocketfft")
_UFUNCS: Final = compiled("scipy.special", "_ufuncs")

bdtr: Final = _function("bdtr")
bdtrc: Final = _function("bdtrc")
bdtrik: Final = _function("bdtrik")
betaincinv: Final = _function("betaincinv")
chdtri: Final = _function("chdtri")
gammaln: Final = _function("gammaln")
ndtr: Final = _function("ndtr")
ndtri: Final = _function("ndtri")
stdtr: Final = _function("stdtr")
stdtrit: Final = _function("stdtrit")
