"""What holds for every test."""

from __future__ import annotations

import os

from hypothesis import settings

# Machines are shared and noisy: how long an example takes says nothing about the program.
settings.register_profile("wiregauge", deadline=None)
# A change is not refused for an example that another would have met: continuous integration tries the same ones.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable" if os.environ.get("CI") else "wiregauge")
