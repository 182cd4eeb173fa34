"""Parser of conditions in text form: `type = 'a' and value > start.value`."""

from __future__ import annotations

from penstock.cep.conditions import IterativeCondition
from penstock.cep.pattern_tokens import Reader
from penstock.cep.text_expressions import (
    AGGREGATES,
    COMPARISONS,
    Aggregate,
    Calculation,
    Comparison,
    Expression,
    Field,
    Junction,
    Literal,
    Negation,
    OneOf,
    condition_of,
)

_WORDS = {"true": True, "false": False, "null": None}


def read_condition(reader: Reader, elements: frozenset[str]) -> IterativeCondition:
    """Read a condition. A path that begins with the name of an element is a field of its last event."""
    return condition_of(_Conditions(reader, elements).alternatives())


class _Conditions:
    def __init__(self, reader: Reader, elements: frozenset[str]) -> None:
        self._reader = reader
        self._elements = elements

    def alternatives(self) -> Expression:
        return self._join("or", self._conjunction)

    def _conjunction(self) -> Expression:
        return self._join("and", self._negation)

    def _join(self, word: str, part: object) -> Expression:
        assert callable(part)
        parts = [part()]
        while self._reader.take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Junction(word, tuple(parts))

    def _negation(self) -> Expression:
        return Negation(self._negation()) if self._reader.take("not") else self._comparison()

    def _comparison(self) -> Expression:
        left = self._sum()
        sign = self._reader.take_one_of(*COMPARISONS)
        if sign is not None:
            return Comparison(sign, left, self._sum())
        if self._reader.take("in"):
            return self._one_of(left)
        return left

    def _one_of(self, term: Expression) -> Expression:
        self._reader.expect("(")
        values = [self._literal()]
        while self._reader.take(","):
            values.append(self._literal())
        self._reader.expect(")")
        return OneOf(term, tuple(values))

    def _sum(self) -> Expression:
        left = self._product()
        while (sign := self._reader.take_one_of("+", "-")) is not None:
            left = Calculation(sign, left, self._product())
        return left

    def _product(self) -> Expression:
        left = self._term()
        while (sign := self._reader.take_one_of("*", "/", "%")) is not None:
            left = Calculation(sign, left, self._term())
        return left

    def _term(self) -> Expression:
        reader = self._reader
        if reader.take("("):
            inner = self.alternatives()
            reader.expect(")")
            return inner
        if reader.token.kind in ("number", "text") or reader.token.text in (*_WORDS, "-"):
            return self._literal()
        token = reader.token
        path = self._path()
        if path[0] in AGGREGATES and len(path) == 1 and reader.take("("):
            element, *field = self._path()
            if element not in self._elements:
                reader.fail(f"'{element}' is not an element of the pattern", token)
            reader.expect(")")
            return Aggregate(path[0], element, tuple(field))
        if len(path) > 1 and path[0] in self._elements:
            return Aggregate("last", path[0], path[1:])
        return Field(path)

    def _path(self) -> tuple[str, ...]:
        names = [self._reader.name("a field, a number or a text in single quotes")]
        while self._reader.take("."):
            names.append(self._reader.name("the name of a field"))
        return tuple(names)

    def _literal(self) -> Literal:
        reader = self._reader
        word = reader.take_one_of(*_WORDS)
        if word is not None:
            return Literal(_WORDS[word])
        text = reader.take_kind("text")
        if text is not None:
            return Literal(text[1:-1].replace("''", "'"))
        sign = -1 if reader.take("-") else 1
        number = reader.take_kind("number") or reader.fail("expected a number, or a text in single quotes")
        return Literal(sign * (float(number) if "." in number else int(number)))
