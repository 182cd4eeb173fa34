"""MATCH_RECOGNIZE: its clauses and the language of its patterns."""

from __future__ import annotations

from penstock.table.logical.row_patterns import PatternSequence, PatternVariable, RowPattern
from penstock.table.sql.parse.expression_parser import ExpressionParser
from penstock.table.sql.parse.problems import IllegalArgumentException
from penstock.table.sql.parse.syntax import Item, Matched, Node, Source

_ONLY_VARIABLES = "PERMUTE and exclusions in patterns are"


class MatchParser(ExpressionParser):
    """Parses the contents of the brackets of MATCH_RECOGNIZE."""

    def match_recognize(self, source: Source) -> Source:
        """Parse the clauses in the brackets of MATCH_RECOGNIZE."""
        at = self.at
        self.expect_symbol("(")
        partition = self.expressions() if self.accept("PARTITION", "BY") else ()
        order = self.orderings() if self.sees("ORDER", "BY") else ()
        measures = self._measures() if self.accept("MEASURES") else ()
        all_rows = self._rows_per_match()
        skip = self._skip() if self.accept("AFTER", "MATCH") else ("TO NEXT ROW", None)
        self.expect("PATTERN")
        self.expect_symbol("(")
        pattern = self._alternatives()
        self.expect_symbol(")")
        within = self.expression() if self.accept("WITHIN") else None
        subsets = self._subsets() if self.accept("SUBSET") else ()
        self.expect("DEFINE")
        defines = self._defines()
        self.expect_symbol(")")
        return Matched(at, source, partition, order, measures, all_rows, skip, pattern, within, subsets, defines)

    def _measures(self) -> tuple[Item, ...]:
        found: list[Item] = []
        while not found or self.accept_symbol(","):
            at = self.at
            if self.sees("RUNNING"):
                self.refuse("RUNNING is")
            self.accept("FINAL")
            value = self.expression()
            self.expect("AS")
            found.append(Item(at, value, self.name()))
        return tuple(found)

    def _rows_per_match(self) -> bool:
        if self.accept("ALL", "ROWS", "PER", "MATCH"):
            return True
        self.accept("ONE", "ROW", "PER", "MATCH")
        return False

    def _skip(self) -> tuple[str, str | None]:
        self.expect("SKIP")
        if self.accept("PAST", "LAST", "ROW"):
            return "PAST LAST ROW", None
        self.expect("TO")
        if self.accept("NEXT", "ROW"):
            return "TO NEXT ROW", None
        word = self.accept_any("FIRST", "LAST") or "LAST"
        return f"TO {word}", self.name()

    def _subsets(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        found: list[tuple[str, tuple[str, ...]]] = []
        while not found or self.accept_symbol(","):
            name = self.name()
            self.expect_symbol("=")
            found.append((name, self.names()))
        return tuple(found)

    def _defines(self) -> tuple[tuple[str, Node], ...]:
        found: list[tuple[str, Node]] = []
        while not found or self.accept_symbol(","):
            name = self.name()
            self.expect("AS")
            found.append((name, self.expression()))
        return tuple(found)

    # --- patterns ---
    def _alternatives(self) -> RowPattern:
        first = self._sequence()
        if self.sees_symbol("|"):
            self.refuse("the alternative | in patterns is")
        return first

    def _sequence(self) -> RowPattern:
        parts = [self._part()]
        while not self.sees_symbol(")") and not self.sees_symbol("|"):
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else PatternSequence(tuple(parts))

    def _part(self) -> RowPattern:
        if self.sees("PERMUTE") or self.sees_symbol("{"):
            self.refuse(_ONLY_VARIABLES)
        if self.accept_symbol("("):
            inside = self._alternatives()
            self.expect_symbol(")")
            if self._quantifier() != (1, 1, True):
                self.refuse("a quantifier behind a group in patterns is")
            return inside
        name = self.name()
        return PatternVariable(name, *self._quantifier())

    def _quantifier(self) -> tuple[int, int | None, bool]:
        low, high = self._counts()
        plain = (low, high) == (1, 1)
        return low, high, plain or not self.accept_symbol("?")

    def _counts(self) -> tuple[int, int | None]:
        if self.accept_symbol("*"):
            return 0, None
        if self.accept_symbol("+"):
            return 1, None
        if self.accept_symbol("?"):
            return 0, 1
        if not self.accept_symbol("{"):
            return 1, 1
        if self.sees_symbol("-"):
            self.refuse(_ONLY_VARIABLES)
        if self.sees_symbol(","):
            raise IllegalArgumentException(f"{self.at}: the least number of rows is missing: {{0,2}} for up to two")
        low = self.whole_number()
        high: int | None = low
        if self.accept_symbol(","):
            high = None if self.sees_symbol("}") else self.whole_number()
        self.expect_symbol("}")
        return low, high
