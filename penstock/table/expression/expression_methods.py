"""Methods of expressions that only call a function of SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.arguments import check_arguments

if TYPE_CHECKING:
    from penstock.table.expression.expression import Expression, Value


@check_arguments
class CallsFunctions:
    """Calls of functions of SQL with the expression as the first argument."""

    def _call(self, function: str, *args: Value) -> Expression:
        """Return a call of a function with this expression and more arguments."""
        raise NotImplementedError

    def array_append(self, addition: Value) -> Expression:
        """Return a call of ARRAY_APPEND with addition."""
        return self._call("ARRAY_APPEND", addition)

    def array_contains(self, needle: Value) -> Expression:
        """Return a call of ARRAY_CONTAINS with needle."""
        return self._call("ARRAY_CONTAINS", needle)

    def array_distinct(self) -> Expression:
        """Return a call of ARRAY_DISTINCT."""
        return self._call("ARRAY_DISTINCT")

    def array_except(self, array: Value) -> Expression:
        """Return a call of ARRAY_EXCEPT with array."""
        return self._call("ARRAY_EXCEPT", array)

    def array_intersect(self, array: Value) -> Expression:
        """Return a call of ARRAY_INTERSECT with array."""
        return self._call("ARRAY_INTERSECT", array)

    def array_max(self) -> Expression:
        """Return a call of ARRAY_MAX."""
        return self._call("ARRAY_MAX")

    def array_min(self) -> Expression:
        """Return a call of ARRAY_MIN."""
        return self._call("ARRAY_MIN")

    def array_position(self, needle: Value) -> Expression:
        """Return a call of ARRAY_POSITION with needle."""
        return self._call("ARRAY_POSITION", needle)

    def array_prepend(self, addition: Value) -> Expression:
        """Return a call of ARRAY_PREPEND with addition."""
        return self._call("ARRAY_PREPEND", addition)

    def array_remove(self, needle: Value) -> Expression:
        """Return a call of ARRAY_REMOVE with needle."""
        return self._call("ARRAY_REMOVE", needle)

    def array_reverse(self) -> Expression:
        """Return a call of ARRAY_REVERSE."""
        return self._call("ARRAY_REVERSE")

    def array_union(self, array: Value) -> Expression:
        """Return a call of ARRAY_UNION with array."""
        return self._call("ARRAY_UNION", array)

    def bitmap_and(self, bitmap2: Value) -> Expression:
        """Return a call of BITMAP_AND with bitmap2."""
        return self._call("BITMAP_AND", bitmap2)

    def bitmap_and_agg(self) -> Expression:
        """Return a call of BITMAP_AND_AGG."""
        return self._call("BITMAP_AND_AGG")

    def bitmap_and_cardinality_agg(self) -> Expression:
        """Return a call of BITMAP_AND_CARDINALITY_AGG."""
        return self._call("BITMAP_AND_CARDINALITY_AGG")

    def bitmap_andnot(self, bitmap2: Value) -> Expression:
        """Return a call of BITMAP_ANDNOT with bitmap2."""
        return self._call("BITMAP_ANDNOT", bitmap2)

    def bitmap_build(self) -> Expression:
        """Return a call of BITMAP_BUILD."""
        return self._call("BITMAP_BUILD")

    def bitmap_build_agg(self) -> Expression:
        """Return a call of BITMAP_BUILD_AGG."""
        return self._call("BITMAP_BUILD_AGG")

    def bitmap_build_cardinality_agg(self) -> Expression:
        """Return a call of BITMAP_BUILD_CARDINALITY_AGG."""
        return self._call("BITMAP_BUILD_CARDINALITY_AGG")

    def bitmap_cardinality(self) -> Expression:
        """Return a call of BITMAP_CARDINALITY."""
        return self._call("BITMAP_CARDINALITY")

    def bitmap_from_bytes(self) -> Expression:
        """Return a call of BITMAP_FROM_BYTES."""
        return self._call("BITMAP_FROM_BYTES")

    def bitmap_or(self, bitmap2: Value) -> Expression:
        """Return a call of BITMAP_OR with bitmap2."""
        return self._call("BITMAP_OR", bitmap2)

    def bitmap_or_agg(self) -> Expression:
        """Return a call of BITMAP_OR_AGG."""
        return self._call("BITMAP_OR_AGG")

    def bitmap_or_cardinality_agg(self) -> Expression:
        """Return a call of BITMAP_OR_CARDINALITY_AGG."""
        return self._call("BITMAP_OR_CARDINALITY_AGG")

    def bitmap_to_array(self) -> Expression:
        """Return a call of BITMAP_TO_ARRAY."""
        return self._call("BITMAP_TO_ARRAY")

    def bitmap_to_bytes(self) -> Expression:
        """Return a call of BITMAP_TO_BYTES."""
        return self._call("BITMAP_TO_BYTES")

    def bitmap_to_string(self) -> Expression:
        """Return a call of BITMAP_TO_STRING."""
        return self._call("BITMAP_TO_STRING")

    def bitmap_xor(self, bitmap2: Value) -> Expression:
        """Return a call of BITMAP_XOR with bitmap2."""
        return self._call("BITMAP_XOR", bitmap2)

    def bitmap_xor_agg(self) -> Expression:
        """Return a call of BITMAP_XOR_AGG."""
        return self._call("BITMAP_XOR_AGG")

    def bitmap_xor_cardinality_agg(self) -> Expression:
        """Return a call of BITMAP_XOR_CARDINALITY_AGG."""
        return self._call("BITMAP_XOR_CARDINALITY_AGG")

    def decode(self, charset: Value) -> Expression:
        """Return a call of DECODE with charset."""
        return self._call("DECODE", charset)

    def encode(self, charset: Value) -> Expression:
        """Return a call of ENCODE with charset."""
        return self._call("ENCODE", charset)

    def ends_with(self, end_expr: Value) -> Expression:
        """Return a call of ENDSWITH with end_expr."""
        return self._call("ENDSWITH", end_expr)

    def inet_aton(self) -> Expression:
        """Return a call of INET_ATON."""
        return self._call("INET_ATON")

    def inet_ntoa(self) -> Expression:
        """Return a call of INET_NTOA."""
        return self._call("INET_NTOA")

    def json_quote(self) -> Expression:
        """Return a call of JSON_QUOTE."""
        return self._call("JSON_QUOTE")

    def json_unquote(self) -> Expression:
        """Return a call of JSON_UNQUOTE."""
        return self._call("JSON_UNQUOTE")

    def left(self, length: Value) -> Expression:
        """Return a call of LEFT with length."""
        return self._call("LEFT", length)

    def regexp(self, regex: Value) -> Expression:
        """Return a call of REGEXP with regex."""
        return self._call("REGEXP", regex)

    def regexp_count(self, regex: Value) -> Expression:
        """Return a call of REGEXP_COUNT with regex."""
        return self._call("REGEXP_COUNT", regex)

    def regexp_instr(self, regex: Value) -> Expression:
        """Return a call of REGEXP_INSTR with regex."""
        return self._call("REGEXP_INSTR", regex)

    def regexp_substr(self, regex: Value) -> Expression:
        """Return a call of REGEXP_SUBSTR with regex."""
        return self._call("REGEXP_SUBSTR", regex)

    def repeat(self, n: Value) -> Expression:
        """Return a call of REPEAT with n."""
        return self._call("REPEAT", n)

    def right(self, length: Value) -> Expression:
        """Return a call of RIGHT with length."""
        return self._call("RIGHT", length)

    def sha2(self, hash_length: Value) -> Expression:
        """Return a call of SHA2 with hash_length."""
        return self._call("SHA2", hash_length)

    def split(self, delimiter: Value) -> Expression:
        """Return a call of SPLIT with delimiter."""
        return self._call("SPLIT", delimiter)

    def starts_with(self, start_expr: Value) -> Expression:
        """Return a call of STARTSWITH with start_expr."""
        return self._call("STARTSWITH", start_expr)

    def url_decode(self) -> Expression:
        """Return a call of URL_DECODE."""
        return self._call("URL_DECODE")

    def url_encode(self) -> Expression:
        """Return a call of URL_ENCODE."""
        return self._call("URL_ENCODE")
