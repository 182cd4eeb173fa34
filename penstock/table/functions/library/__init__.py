"""The functions of SQL: kernels over columns."""
