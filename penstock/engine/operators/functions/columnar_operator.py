"""An operator that works on columns, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable

from penstock.common.composite_types import RowTypeInfo
from penstock.common.typeinfo import TypeInformation
from penstock.engine.operators.operator import Operator
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk
from penstock.engine.records.failures import USER_ERRORS
from penstock.errors import TypeMismatch


class ColumnsOperator(Operator):
    """Applies a function to the columns of each chunk. Values become columns first, which needs their declared type."""

    def __init__(
        self,
        function: Callable[[Columns], Columns],
        input_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
    ) -> None:
        super().__init__(output_type)
        self.function = function
        self.input_type = input_type

    def chunk(self, chunk: Chunk) -> None:
        try:
            result = self.function(self._columns_of(chunk))
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        if len(result):
            self.emit_chunk(Chunk.of(result))

    def _columns_of(self, chunk: Chunk) -> Columns:
        if chunk.columns is not None:
            return chunk.columns
        if not isinstance(self.input_type, RowTypeInfo):
            found = "nothing is declared of them" if self.input_type is None else f"not {self.input_type.notation}"
            raise TypeMismatch(f"only records declared as ROW or ROW_NAMED can become columns, and {found}")
        return Columns.of_rows(chunk.values, chunk.timestamps, self.input_type)
