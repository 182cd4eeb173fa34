"""Queryable state: requests and answers, their transport, and the answers of a slot."""
