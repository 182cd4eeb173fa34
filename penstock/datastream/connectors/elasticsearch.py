"""Elasticsearch indices as sinks, for servers from version 7.14."""

from penstock.connectors.elasticsearch.elasticsearch_sinks import *  # noqa: F403
from penstock.connectors.elasticsearch.elasticsearch_sinks import __all__  # noqa: F401
