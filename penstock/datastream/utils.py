"""ResultTypeQueryable, in the place where PyFlink has it."""

from penstock.api.functions.element_functions import ResultTypeQueryable

__all__ = ["ResultTypeQueryable"]
