"""Sinks into systems that can prepare a transaction now and commit it later, perhaps from another process.

Delivery: exactly once, if the outside system keeps a pre-committed transaction until it is committed or aborted, and if
a repeated commit does no harm.
"""

from __future__ import annotations

import logging
import time
import uuid
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from penstock.api.functions.contexts import RuntimeContext
from penstock.api.functions.element_functions import Function
from penstock.api.functions.source_functions import SinkFunction
from penstock.api.settings.values import check_kind
from penstock.base.arguments import check_arguments
from penstock.common.serializer import DeclaredTypeSerializer, TypeSerializer
from penstock.connectors.source_api import Committer, Sink, SinkWriter, WriterContext
from penstock.persisted import persisted

__all__ = ["TwoPhaseCommitSink", "TwoPhaseCommitSinkFunction", "as_sink"]

log = logging.getLogger("penstock.connectors")


class TwoPhaseCommitSinkFunction(Function):
    """Writes into transactions, one for each checkpoint.

    A transaction is the value that `begin_transaction` returns: plain data that another process can use, such as the
    name of a transaction or of a file. It becomes part of the checkpoint. These methods are called in turn:

    1. `begin_transaction` when the sink starts and after each checkpoint;
    2. `invoke` for each record;
    3. `pre_commit` at the checkpoint: from now on nothing may be lost, and nothing may be seen;
    4. `commit` once the checkpoint is complete.

    After a failure, `recover_and_commit` is called for the transactions that were pre-committed for the checkpoint from
    which the job goes on, and `recover_and_abort` for those that were begun after it. `open` comes before all of them.
    """

    _transaction_timeout: int | None = None
    _ignores_failures_after_timeout = False
    _warning_ratio: float | None = None

    @check_arguments
    def __init__(
        self,
        transaction_serializer: TypeSerializer[Any] | None = None,
        context_serializer: TypeSerializer[Any] | None = None,
    ) -> None:
        """Take serialisers, as in Java. None is needed: transactions are pickled, and there is no context."""
        for given in (transaction_serializer, context_serializer):
            if given is not None and type(given) is not DeclaredTypeSerializer:
                raise TypeError(
                    f"{type(self).__name__}: transactions are pickled, and a serializer would have no effect: "
                    f"leave out {given!r}, or make it with create_serializer() of a type"
                )

    @abstractmethod
    def begin_transaction(self) -> Any:
        """Begin a transaction and return it as plain data."""

    @abstractmethod
    def invoke(self, transaction: Any, value: Any, context: SinkFunction.Context) -> None:
        """Write a record within a transaction."""

    @abstractmethod
    def pre_commit(self, transaction: Any) -> None:
        """Prepare a transaction so that `commit` cannot fail, whichever process calls it."""

    @abstractmethod
    def commit(self, transaction: Any) -> None:
        """Make a pre-committed transaction visible.

        An error here fails the job, which then recovers the transaction.
        """

    @abstractmethod
    def abort(self, transaction: Any) -> None:
        """Throw away a transaction that was begun and will not be committed."""

    def recover_and_commit(self, transaction: Any) -> None:
        """Commit a transaction of an earlier attempt. It may have been committed already, which must do no harm."""
        self.commit(transaction)

    def recover_and_abort(self, transaction: Any) -> None:
        """Abort a transaction of an earlier attempt, if it exists. It may have been aborted already, or never begun."""
        self.abort(transaction)

    def finish_recovering_context(self, handled_transactions: Collection[Any]) -> None:
        """Find and abort forgotten transactions. Called at each start, before the first transaction is begun.

        `handled_transactions` are the transactions in the checkpoint, of all subtasks; there are none if the job starts
        from the beginning. An attempt without a complete checkpoint may have left others behind. A system that keeps
        them for ever needs names by which this subtask can find and abort them here. In BATCH mode it is called on the
        driver, in the name of all subtasks, before the commit and after a failure.
        """

    # --- settings ---
    @check_arguments
    def set_transaction_timeout(self, transaction_timeout: int) -> TwoPhaseCommitSinkFunction:
        """Set the time, in milliseconds, after which the outside system gives up a transaction."""
        if transaction_timeout < 0:
            raise ValueError(f"a timeout must not be negative, but is {transaction_timeout}")
        self._transaction_timeout = transaction_timeout
        return self

    def ignore_failures_after_transaction_timeout(self) -> TwoPhaseCommitSinkFunction:
        """Continue if a transaction of an earlier attempt cannot be committed and is older than the timeout.

        Its records are lost. Without this setting, the job could no longer be started.
        """
        self._ignores_failures_after_timeout = True
        return self

    @check_arguments
    def enable_transaction_timeout_warnings(self, warning_ratio: float) -> TwoPhaseCommitSinkFunction:
        """Warn if a transaction is committed later than this part of the timeout after its begin."""
        if not 0 <= warning_ratio <= 1:
            raise ValueError(f"the ratio must be between 0 and 1, but is {warning_ratio}")
        self._warning_ratio = warning_ratio
        return self

    def current_time(self) -> int:
        """Return the time, in milliseconds, from which the age of transactions is computed."""
        return int(time.time() * 1000)


@check_arguments
def as_sink(function: TwoPhaseCommitSinkFunction) -> Sink:
    """Return a sink that calls the function."""
    check_kind(TwoPhaseCommitSinkFunction, function)
    return TwoPhaseCommitSink(function)


@persisted
@dataclass(frozen=True)
class _Transaction:
    """A transaction in the form in which the checkpoint holds it. All copies of it are equal."""

    id: str
    handle: Any = field(compare=False)
    began: int = field(compare=False)


@dataclass
class _Running:
    """The state that the writer and the committer of one subtask share."""

    function: TwoPhaseCommitSinkFunction
    is_open: bool = False
    current: _Transaction | None = None
    pre_committed: set[str] = field(default_factory=set)
    """Ids of the transactions that this attempt has pre-committed."""
    waiting: list[_Transaction] = field(default_factory=list)
    """Transactions to commit as soon as the function is open."""

    def open(self, context: RuntimeContext) -> None:
        self.is_open = True
        self.function.set_runtime_context(context)
        self.function.open(context)
        waiting, self.waiting = self.waiting, []
        for transaction in waiting:
            self.commit(transaction)

    def begin(self) -> _Transaction:
        if self.current is None:
            began = self.function.current_time()
            self.current = _Transaction(uuid.uuid4().hex, self.function.begin_transaction(), began)
        return self.current

    def pre_commit(self) -> list[_Transaction]:
        if self.current is None:
            return []
        transaction = self.current
        self.function.pre_commit(transaction.handle)
        self.current = None
        self.pre_committed.add(transaction.id)
        return [transaction]

    def commit(self, transaction: _Transaction) -> None:
        if not self.is_open:
            self.waiting.append(transaction)
            return
        self._warn_of_age(transaction)
        if transaction.id in self.pre_committed:
            self.function.commit(transaction.handle)
            self.pre_committed.discard(transaction.id)
        else:
            self._recover(transaction)

    def abandon(self, transaction: _Transaction) -> None:
        """Abort a pre-committed transaction as a later attempt would, because the next one has already begun."""
        if self.is_open:
            self.pre_committed.discard(transaction.id)
            self.function.recover_and_abort(transaction.handle)

    def _recover(self, transaction: _Transaction) -> None:
        try:
            self.function.recover_and_commit(transaction.handle)
        except Exception as error:
            timeout, age = self.function._transaction_timeout, self._age(transaction)
            if not self.function._ignores_failures_after_timeout or timeout is None or age <= timeout:
                raise
            log.error(
                "Transaction %r could not be committed, and its records are lost: it is %d ms old, which is more than "
                "its timeout of %d ms: %s", transaction.handle, age, timeout, error,
            )  # fmt: skip

    def _age(self, transaction: _Transaction) -> int:
        return self.function.current_time() - transaction.began

    def _warn_of_age(self, transaction: _Transaction) -> None:
        ratio, timeout = self.function._warning_ratio, self.function._transaction_timeout
        if ratio is not None and timeout is not None and self._age(transaction) > timeout * ratio:
            log.warning(
                "Transaction %r is committed %d ms after its begin, near its timeout of %d ms",
                transaction.handle, self._age(transaction), timeout,
            )  # fmt: skip

    def close(self) -> None:
        if not self.is_open:
            return
        self.is_open = False
        transaction, self.current = self.current, None
        try:
            if transaction is not None:
                self.function.abort(transaction.handle)
        finally:
            self.function.close()


class TwoPhaseCommitSink(Sink):
    """A TwoPhaseCommitSinkFunction as a sink."""

    def __init__(self, function: TwoPhaseCommitSinkFunction) -> None:
        self.function = function
        self._running: _Running | None = None

    def _get_running(self) -> _Running:
        self._running = self._running or _Running(self.function)
        return self._running

    def create_writer(self, context: WriterContext, restored: list[_Transaction]) -> SinkWriter:
        running = self._get_running()
        running.open(context.runtime)
        for transaction in restored:
            self.function.recover_and_abort(transaction.handle)
        handled = [transaction.handle for transaction in (*context.all_committables, *context.all_restored)]
        if not context.has_rivals:
            self.function.finish_recovering_context(handled)
        running.begin()
        return _Writer(running)

    def create_committer(self) -> Committer:
        return _Committer(self._get_running())


class _Writer(SinkWriter):
    def __init__(self, running: _Running) -> None:
        self._running = running
        self._ended = False

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self._running.function.invoke(self._running.begin().handle, value, context)

    def begun(self) -> list[_Transaction]:
        return [self._running.begin()]

    def flush(self, end_of_input: bool) -> None:
        self._ended = self._ended or end_of_input

    def prepare_commit(self) -> list[_Transaction]:
        return self._running.pre_commit()

    def snapshot_state(self, checkpoint_id: int) -> list[_Transaction]:
        return [] if self._ended else [self._running.begin()]

    def close(self) -> None:
        self._running.close()


class _Committer(Committer):
    def __init__(self, running: _Running) -> None:
        self._running = running

    def commit(self, committables: list[_Transaction]) -> None:
        for transaction in committables:
            self._running.commit(transaction)

    def abort(self, begun: list[_Transaction]) -> None:
        for transaction in begun:
            self._running.function.recover_and_abort(transaction.handle)

    def discard(self, committables: list[_Transaction]) -> None:
        for transaction in committables:
            self._running.abandon(transaction)

    def close(self) -> None:
        self._running.close()
