"""The version, which is that of what is compiled."""

from __future__ import annotations

__all__ = ["__version__"]

try:
    from wiregauge._native import version
except ImportError:  # the source tree on sys.path without what is compiled
    __version__ = "0+uninstalled"
else:
    __version__ = version()
