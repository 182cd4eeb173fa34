"""Elasticsearch indices as sinks, for servers from version 7.14."""

from penstock.connectors.elasticsearch.sinks import *  # noqa: F403
from penstock.connectors.elasticsearch.sinks import __all__  # noqa: F401
