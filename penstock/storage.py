"""Storage on any fsspec URL, as checkpoints use it. See `docs/storage.md`."""

from penstock.base.storage import Storage

__all__ = ["Storage"]
