"""Aggregate functions at run time."""

from penstock.table.runtime.aggregates.choice import fold_for, folds_for
from penstock.table.runtime.aggregates.fold import Fold, VectorFold

__all__ = ["Fold", "VectorFold", "fold_for", "folds_for"]
