"""Catalogs and what they hold: tables, views, functions, models, schemas."""
