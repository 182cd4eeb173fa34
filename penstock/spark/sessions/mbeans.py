"""Beans in the JVM of the driver's Spark session. Every JVM has their classes, so no jar is shipped.

A `RequiredModelMBean` holds attributes that are set from outside, so the JVM need not call Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from penstock.errors import ConfigurationError
from penstock.spark.sessions.session import java_gateway

_NUMBER, _TEXT, _TRUTH = "java.lang.Number", "java.lang.String", "java.lang.Boolean"
_TYPES = {bool: _TRUTH, int: _NUMBER, float: _NUMBER}
"""Java types by Python types. An int arrives in Java as an Integer or as a Long, depending on its size."""


_Types = tuple[tuple[str, str], ...]
_OBJECT_NAME = "javax.management.ObjectName"


def interface_method(gateway: Any, interface: str, method: str, types: list[str]) -> Any:
    """Return a `java.lang.reflect.Method` of an interface, by its name and the names of its argument types."""
    named = gateway.jvm.java.lang.Class.forName
    classes = gateway.new_array(gateway.jvm.java.lang.Class, len(types))
    for index, kind in enumerate(types):
        classes[index] = named(kind)
    return named(interface).getMethod(method, classes)


def objects(gateway: Any, values: list[Any]) -> Any:
    """Return an `Object[]` with these values."""
    array = gateway.new_array(gateway.jvm.java.lang.Object, len(values))
    for index, value in enumerate(values):
        array[index] = value
    return array


@dataclass
class _Bean:
    java: Any
    types: dict[str, str]
    shown: dict[str, Any] = field(default_factory=dict)


def _types(attributes: Mapping[str, Any]) -> dict[str, str]:
    return {name: _TYPES.get(type(value), _TEXT) for name, value in attributes.items()}


class MBeans:
    """The beans of one reporter. Closing it removes all of them."""

    def __init__(self, ports: list[int]) -> None:
        """Connect to the bean server. If there are ports, the first free one serves the beans over Java's RMI."""
        self._gateway = java_gateway()
        if self._gateway is None:
            raise ConfigurationError(
                "the JMX reporter needs the JVM of the driver's Spark session, and there is no such JVM: the job "
                "runs without Spark, or Spark is behind Spark Connect"
            )
        self._java: Any = self._gateway.jvm
        self._server: Any = self._java.java.lang.management.ManagementFactory.getPlatformMBeanServer()
        self._beans: dict[str, _Bean] = {}
        self._infos: dict[_Types, Any] = {}
        self._methods: dict[str, Any] = {}
        self._connector: Any = None
        self.port = self._serve(ports) if ports else None

    def show(self, wanted: Mapping[str, Mapping[str, Any]]) -> None:
        """Make, change and remove beans until exactly the wanted ones exist. `wanted`: attributes by name of a bean."""
        for name in [name for name in self._beans if name not in wanted]:
            self._remove(name)
        for name, attributes in wanted.items():
            if name in self._beans and self._beans[name].types != _types(attributes):
                self._remove(name)
            if name not in self._beans:
                self._add(name, attributes)
            self._set(self._beans[name], attributes)

    def _add(self, name: str, attributes: Mapping[str, Any]) -> None:
        types = tuple(_types(attributes).items())
        if types not in self._infos:
            self._infos[types] = self._info(types)
        # The bean keeps a copy of its own.
        bean = self._java.javax.management.modelmbean.RequiredModelMBean(self._infos[types])
        self._ask_server("registerMBean", {"java.lang.Object": bean, _OBJECT_NAME: self._object_name(name)})
        self._beans[name] = _Bean(bean, _types(attributes))

    def _set(self, bean: _Bean, attributes: Mapping[str, Any]) -> None:
        """Set only changed attributes, because each one costs a message to the JVM."""
        for attribute, value in attributes.items():
            if bean.shown.get(attribute) != value:
                plain = value if type(value) in _TYPES else str(value)
                bean.java.setAttribute(self._java.javax.management.Attribute(attribute, plain))
                bean.shown[attribute] = value

    def _info(self, types: _Types) -> Any:
        """Return the description of a bean, which keeps the values of its attributes until they are set again."""
        model = self._java.javax.management.modelmbean
        infos = self._array(model.ModelMBeanAttributeInfo, len(types))
        for index, (attribute, kind) in enumerate(types):
            fields = self._array(self._java.java.lang.String, 3)
            fields[0], fields[1], fields[2] = f"name={attribute}", "descriptorType=attribute", "currencyTimeLimit=0"
            descriptor = self._java.javax.management.modelmbean.DescriptorSupport(fields)
            infos[index] = model.ModelMBeanAttributeInfo(attribute, kind, attribute, True, True, False, descriptor)
        return model.ModelMBeanInfoSupport(
            "penstock.Metric",
            "A metric of a Penstock job",
            infos,
            self._array(model.ModelMBeanConstructorInfo, 0),
            self._array(model.ModelMBeanOperationInfo, 0),
            self._array(model.ModelMBeanNotificationInfo, 0),
        )

    def _array(self, kind: Any, length: int) -> Any:
        return self._gateway.new_array(kind, length)

    def _remove(self, name: str) -> None:
        del self._beans[name]
        with suppress(Py4JJavaError):
            self._ask_server("unregisterMBean", {_OBJECT_NAME: self._object_name(name)})

    def _object_name(self, name: str) -> Any:
        return self._java.javax.management.ObjectName(name)

    def _ask_server(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a method of the interface MBeanServer. `arguments`: values by the names of their types.

        The method is looked up in the interface, because the server's class belongs to a module closed to py4j.
        """
        if method not in self._methods:
            named = interface_method(self._gateway, "javax.management.MBeanServer", method, list(arguments))
            self._methods[method] = named
        return self._methods[method].invoke(self._server, objects(self._gateway, list(arguments.values())))

    # --- other processes ---
    def _serve(self, ports: list[int]) -> int:
        for port in ports:
            try:
                return self._serve_at(port)
            except Py4JJavaError as error:
                if port == ports[-1]:
                    raise OSError(f"port {port} cannot be used for JMX: {error.java_exception.getMessage()}") from None
        raise AssertionError("there are no ports")

    def _serve_at(self, port: int) -> int:
        self._java.java.rmi.registry.LocateRegistry.createRegistry(port)
        url: JavaObject = self._java.javax.management.remote.JMXServiceURL(
            f"service:jmx:rmi:///jndi/rmi://localhost:{port}/jmxrmi"
        )
        factory = self._java.javax.management.remote.JMXConnectorServerFactory
        self._connector = factory.newJMXConnectorServer(url, None, self._server)
        self._connector.start()
        return port

    def close(self) -> None:
        """Remove all beans, and stop serving them. The JVM, and the beans with it, may be gone already."""
        with suppress(Py4JError, Py4JNetworkError, OSError):
            for name in list(self._beans):
                self._remove(name)
            if self._connector is not None:
                self._connector.stop()
