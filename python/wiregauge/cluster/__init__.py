"""The same work on a Ray cluster: runs of a sweep and parts of tracking as tasks on other machines.

Where the work is done changes nothing in what comes out. Ray is an extra: nothing here imports it before an engine of
that name is asked for, and nothing else in the house imports it at all.
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
