"""Simulations of OMNeT++/INET: a test as one of them, and one of them as a test."""

from __future__ import annotations

from wiregauge.inet.reading import Read, read_inet
from wiregauge.inet.settings import configurations
from wiregauge.inet.values import InetError
from wiregauge.inet.writing import inet_files

__all__ = ["InetError", "Read", "configurations", "inet_files", "read_inet"]
