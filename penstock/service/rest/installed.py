"""A check for the libraries that REST needs, made before any of them is imported."""

from __future__ import annotations

from penstock.base.libraries import optional_library


def check_installed() -> None:
    """Raise MissingDependency, which names the package to install, if a library of REST is missing."""
    for library in ("fastapi", "uvicorn", "python_multipart"):
        optional_library(library, "REST needs FastAPI and uvicorn", "server")
