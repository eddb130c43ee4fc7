"""`python -m mappa_rl.cli`, for launchers that start modules."""

from mappa_rl.cli.app import main

main()
