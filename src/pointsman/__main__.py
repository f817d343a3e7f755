"""`python -m pointsman`."""

from pointsman.cli import main

main()
