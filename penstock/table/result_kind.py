"""ResultKind: whether a statement has rows to show."""

__all__ = ["ResultKind"]


class ResultKind:
    """What a statement came to."""

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1
