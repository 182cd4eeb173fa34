"""Whether what REST is built on is installed; asked before anything of it is imported."""

from __future__ import annotations

from penstock.base.libraries import optional_library


def check_installed() -> None:
    """Raises MissingDependency, which says what to install."""
    for library in ("fastapi", "uvicorn", "python_multipart"):
        optional_library(library, "REST needs FastAPI and uvicorn", "server")
