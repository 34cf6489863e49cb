"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# Machines are shared and noisy: how long an example takes says nothing about the program.
settings.register_profile("wiregauge", deadline=None)
settings.load_profile("wiregauge")
