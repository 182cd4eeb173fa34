"""Descriptions of connections and connectors: nothing here needs a broker."""

import pickle
import sys

import pytest

from penstock.common import SimpleStringSchema
from penstock.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSource
from penstock.errors import MissingDependency

HERE = RMQConnectionConfig.Builder().set_host("here").build()


def test_what_is_set_can_be_read():
    config = (
        RMQConnectionConfig.Builder()
        .set_host("here")
        .set_port(4444)
        .set_virtual_host("orders")
        .set_user_name("me")
        .set_password("secret")
        .set_network_recovery_interval(1)
        .set_automatic_recovery(False)
        .set_topology_recovery_enabled(False)
        .set_connection_timeout(2)
        .set_requested_channel_max(3)
        .set_requested_frame_max(5000)
        .set_requested_heartbeat(6)
        .set_prefetch_count(7)
        .build()
    )
    assert (config.get_host(), config.get_port(), config.get_virtual_host()) == ("here", 4444, "orders")
    assert (config.get_user_name(), config.get_password(), config.get_uri()) == ("me", "secret", None)
    assert (config.is_automatic_recovery(), config.is_topology_recovery()) == (False, False)
    assert (config.get_network_recovery_interval(), config.get_connection_timeout()) == (1, 2)
    assert (config.get_requested_channel_max(), config.get_requested_frame_max()) == (3, 5000)
    assert (config.get_requested_heartbeat(), config.get_prefetch_count()) == (6, 7)
    assert pickle.loads(pickle.dumps(config)) == config


def test_secrets_are_not_shown():
    by_uri = RMQConnectionConfig.Builder().set_uri("amqp://me:secret@here:4444/orders").build()
    by_parts = RMQConnectionConfig.Builder().set_host("here").set_password("secret").build()
    assert repr(by_uri) == "RMQConnectionConfig(here:4444/orders)"
    assert repr(by_parts) == "RMQConnectionConfig(here:5672)"


@pytest.mark.parametrize(
    ("setter", "value"),
    [
        ("set_host", ""),
        ("set_port", 0),
        ("set_port", 70000),
        ("set_virtual_host", ""),
        ("set_uri", "http://here"),
        ("set_prefetch_count", -1),
        ("set_requested_heartbeat", -1),
        ("set_connection_timeout", -1),
    ],
)
def test_values_that_make_no_sense(setter, value):
    with pytest.raises(ValueError, match=r"not|begins"):
        getattr(RMQConnectionConfig.Builder(), setter)(value)


def test_a_host_or_a_uri_and_not_both():
    with pytest.raises(ValueError, match="needs set_host or set_uri"):
        RMQConnectionConfig.Builder().build()
    with pytest.raises(ValueError, match="exclude each other"):
        RMQConnectionConfig.Builder().set_host("here").set_uri("amqp://here").build()


def test_connectors_check_what_they_are_given():
    with pytest.raises(TypeError, match="RMQConnectionConfig"):
        RMQSource("here", "q", True, SimpleStringSchema())
    with pytest.raises(ValueError, match="queue's name"):
        RMQSink(HERE, "", SimpleStringSchema())
    with pytest.raises(TypeError, match="DeserializationSchema"):
        RMQSource(HERE, "q", True, str)
    with pytest.raises(TypeError, match="SerializationSchema"):
        RMQSink(HERE, "q", str)
    with pytest.raises(ValueError, match="only one consumer, not 2"):
        RMQSource(HERE, "q", True, SimpleStringSchema(), consumers=2)
    with pytest.raises(ValueError, match="at least one consumer"):
        RMQSource(HERE, "q", False, SimpleStringSchema(), consumers=0)


def test_the_package_is_named_when_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pika", None)
    with pytest.raises(MissingDependency, match=r"penstock\[rabbitmq\]"):
        RMQSink(HERE, "q", SimpleStringSchema()).create_writer(None, [])
