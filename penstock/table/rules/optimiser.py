"""The optimiser: rewrites a logical plan into relations that stand for one operator each."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import TableException, ValidationException
from penstock.table.functions import fold_constants
from penstock.table.logical.building import aggregate, set_operation
from penstock.table.logical.kinds import SetKind, WindowKind
from penstock.table.logical.nodes import (
    Aggregate,
    Filter,
    GroupWindow,
    Join,
    Project,
    Relation,
    SetOperation,
    Sort,
    Values,
    WindowTable,
    rewritten_plan,
    walk_plan,
)
from penstock.table.logical.optimised_nodes import Calc
from penstock.table.rules.calcs import fuse
from penstock.table.rules.group_keys import with_needed_keys
from penstock.table.rules.join_conditions import with_computed_keys
from penstock.table.rules.legacy_group_windows import window_table_of, with_windows_below
from penstock.table.rules.pruning import prune
from penstock.table.rules.pushdown import with_filters_down
from penstock.table.rules.ranks import recognise_rank
from penstock.table.rules.window_columns import END, START, window_bounds


def optimise(relation: Relation, batch: bool, sort_limit: int = -1) -> Relation:
    """Return the optimised plan. `sort_limit` is the LIMIT of an ORDER BY without one in BATCH mode, or -1 for none."""
    if batch and sort_limit >= 0:
        relation = rewritten_plan(relation, lambda one: _limit(one, sort_limit))
    relation = rewritten_plan(relation, with_windows_below)
    for part in walk_plan(relation):
        if isinstance(part, WindowTable):
            _check_window(part)
        elif isinstance(part, Aggregate):
            _check_slices(part)
        elif isinstance(part, GroupWindow) and part.kind == WindowKind.SESSION and batch:
            raise TableException("Unaligned windows like session are not supported in batch mode yet.")
        elif isinstance(part, GroupWindow) and not batch and part.input.columns[part.time].time is None:
            found = part.input.columns[part.time]
            raise TableException(f"Window aggregate can only be defined over a time attribute column, not over {found}")
    if batch:
        relation = rewritten_plan(relation, with_needed_keys)
    smaller = prune(with_filters_down(rewritten_plan(relation, _with_constants)))
    return rewritten_plan(smaller, lambda one: _change(one, batch))


def _limit(relation: Relation, limit: int) -> Relation:
    unlimited = isinstance(relation, Sort) and relation.keys and relation.limit is None
    return replace(relation, limit=limit) if isinstance(relation, Sort) and unlimited else relation


def _with_constants(relation: Relation) -> Relation:
    """Compute the constant parts of a relation's expressions."""
    match relation:
        case Filter():
            return replace(relation, condition=fold_constants(relation.condition))
        case Project():
            return replace(relation, exprs=tuple(map(fold_constants, relation.exprs)))
        case Join() if relation.condition is not None:
            return replace(relation, condition=fold_constants(relation.condition))
    return relation


def _check_window(relation: WindowTable) -> None:
    size, slide = relation.size, relation.slide
    if relation.kind == WindowKind.CUMULATE and size % slide:
        raise ValidationException(
            f"CUMULATE table function based aggregate requires maxSize must be an integral multiple of step, but got "
            f"maxSize {size} ms and step {slide} ms"
        )


def _check_slices(relation: Aggregate) -> None:
    """Refuse an aggregate over HOP windows whose size is not a multiple of the slide."""
    windows = window_bounds(relation.input)
    if windows is None:
        return
    kind, size, slide, _ = windows.spec
    roles = {dict(windows.roles).get(key) for key in relation.keys}
    if kind == WindowKind.HOP and size % slide and {START, END} <= roles:
        raise TableException(
            f"HOP table function based aggregate requires size must be an integral multiple of slide, but got size "
            f"{size} ms and slide {slide} ms"
        )


def _change(relation: Relation, batch: bool) -> Relation:
    """Rewrite a relation whose inputs are optimised."""
    match relation:
        case GroupWindow() if not relation.by_rows:
            return rewritten_plan(window_table_of(relation), fuse)
        case SetOperation() if relation.kind == SetKind.UNION and not relation.all:
            return aggregate(set_operation(relation.parts, SetKind.UNION, True, relation.columns), _all(relation), [])
        case Sort() if relation.limit == 0:
            return Values(relation.columns, ())
        case Sort() if batch and relation.keys and relation.offset and relation.limit is None:
            raise TableException("ORDER BY with OFFSET needs a LIMIT, too")
        case Join():
            return rewritten_plan(with_computed_keys(relation), fuse)
    made = fuse(relation)
    return recognise_rank(made) if isinstance(made, Calc) and not batch else made


def _all(relation: Relation) -> range:
    return range(len(relation.columns))
