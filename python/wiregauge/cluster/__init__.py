"""Execution on a Ray cluster: runs of a sweep and parts of tracking as tasks on other machines.

The results do not depend on where the work is done. Ray is an optional dependency: it is imported here only when its
engine is requested, and nowhere else.
"""

from __future__ import annotations

from wiregauge.cluster.engine import Cluster, EngineError, EngineNameError, connected, read_engine
from wiregauge.cluster.retracking import retrack
from wiregauge.cluster.storage import Storage, StorageError
from wiregauge.cluster.sweep import OnCluster

__all__ = [
    "Cluster",
    "EngineError",
    "EngineNameError",
    "OnCluster",
    "Storage",
    "StorageError",
    "connected",
    "read_engine",
    "retrack",
]
