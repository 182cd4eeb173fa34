"""ResultKind: whether a statement has rows to show."""

__all__ = ["ResultKind"]


class ResultKind:
    """The kinds of results of a statement: only success, or success with rows to show."""

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1
