"""Statements of SQL that are not queries: DDL, SHOW, ALTER, SET."""
