"""Executors on hosts that cannot be reached are replaced before an attempt, and no others."""

import socket
from types import SimpleNamespace

import pytest

from penstock.spark.sessions.executors import Executors, probe_hosts

DRIVER, NEAR, FAR, SPARE = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"


class Application:
    """Executors by host, as the JVM tells of them, and those that were replaced."""

    def __init__(self, *hosts):
        self.hosts = {host: [str(number)] for number, host in enumerate((DRIVER, *hosts))}
        self.replaced = []

    @property
    def context(self):
        infos = [SimpleNamespace(host=lambda host=host: host, port=lambda: 7000) for host in self.hosts]
        scala = SimpleNamespace(
            statusTracker=lambda: SimpleNamespace(getExecutorInfos=lambda: infos),
            taskScheduler=lambda: SimpleNamespace(getExecutorsAliveOnHost=self._alive),
            killAndReplaceExecutor=self.replaced.append,
        )
        options = {"spark.driver.host": DRIVER}
        return SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scala), getConf=lambda: options)

    def _alive(self, host):
        alive = SimpleNamespace(mkString=lambda between: between.join(self.hosts[host]))
        return SimpleNamespace(isDefined=lambda: host in self.hosts, get=lambda: alive)


class Network:
    """Says of every host whether it answers."""

    def __init__(self):
        self.off = set()
        self.refusing = set()
        self.asked = []

    def connect(self, address, seconds):
        host, _ = address
        self.asked.append(host)
        if host in self.off:
            raise TimeoutError("timed out")
        if host in self.refusing:
            raise ConnectionRefusedError(111, "refused")
        return SimpleNamespace(close=lambda: None)


@pytest.fixture
def network(monkeypatch):
    made = Network()
    monkeypatch.setattr(socket, "create_connection", made.connect)
    return made


def test_a_host_that_does_not_answer_any_more_loses_its_executors(network):
    application = Application(NEAR, FAR)
    executors = Executors(application.context)
    executors.give_up_unreachable([])
    network.off = {FAR}
    executors.give_up_unreachable([])
    assert application.replaced == application.hosts[FAR]


def test_every_executor_of_a_lost_host_is_replaced(network):
    application = Application(NEAR, FAR)
    application.hosts[FAR] = ["7", "8"]
    Executors(application.context).give_up_unreachable([FAR])
    assert sorted(application.replaced) == ["7", "8"]


def test_a_spare_host_without_slots_counts_too(network):
    application = Application(NEAR, FAR, SPARE)
    executors = Executors(application.context)
    executors.probe()
    network.off = {SPARE}
    executors.give_up_unreachable([FAR])
    assert sorted(application.replaced) == sorted(application.hosts[FAR] + application.hosts[SPARE])


def test_a_host_that_is_known_to_be_lost_is_not_asked(network):
    """It would only cost the time in which it does not answer."""
    Executors(Application(NEAR, FAR).context).give_up_unreachable([FAR])
    assert network.asked == [NEAR]


def test_a_host_that_never_answered_may_be_behind_a_firewall(network):
    network.off = {FAR}
    application = Application(NEAR, FAR)
    executors = Executors(application.context)
    for _ in range(2):
        executors.give_up_unreachable([])
    assert application.replaced == []


def test_a_host_that_refuses_a_connection_is_there(network):
    network.refusing = {FAR}
    application = Application(NEAR, FAR)
    executors = Executors(application.context)
    assert executors.probe() == set()
    network.refusing, network.off = set(), {FAR}
    assert executors.probe() == {FAR}


def test_a_driver_that_is_cut_off_replaces_nothing(network):
    application = Application(NEAR, FAR)
    executors = Executors(application.context)
    executors.probe()
    network.off = {NEAR, FAR}
    executors.give_up_unreachable([])
    assert application.replaced == []


def test_the_own_host_is_not_asked(network):
    assert Executors(Application().context).probe() == set()
    assert network.asked == []


def test_a_host_answers_if_one_of_its_executors_does(monkeypatch):
    def connect(address, seconds):
        if address[1] == 1:
            raise TimeoutError("timed out")
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(socket, "create_connection", connect)
    assert probe_hosts([(NEAR, 2), (NEAR, 1), (FAR, 1)]) == {NEAR: True, FAR: False}
