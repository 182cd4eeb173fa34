"""`python -m penstock` is the `penstock` command."""

from penstock.service.cli import main

main()
