"""Catalogs and their content: tables, views, functions, models, schemas."""
