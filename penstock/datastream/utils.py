"""ResultTypeQueryable, where PyFlink has it."""

from penstock.vocabulary.functions.element_functions import ResultTypeQueryable

__all__ = ["ResultTypeQueryable"]
