"""Aggregate functions at run time."""

from penstock.table.operators.aggregate.functions.fold import Fold, VectorFold
from penstock.table.operators.aggregate.functions.fold_choice import fold_for, folds_for

__all__ = ["Fold", "VectorFold", "fold_for", "folds_for"]
