"""`python -m wiregauge`: the same as the `wiregauge` command."""

from wiregauge.cli import main

main()
