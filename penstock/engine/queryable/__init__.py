"""Queryable state: requests and answers, how they travel, and what a slot answers."""
