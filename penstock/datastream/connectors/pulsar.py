"""The names of PyFlink's connector for Pulsar. They can be imported; the connector does not exist yet."""

from penstock.base.absent_names import absent

_ADVICE = (
    "there is no connector for Pulsar; write a Source or a Sink (docs/connectors), or read the topic with "
    "Spark and env.from_spark(...)"
)

MessageDelayer = absent("MessageDelayer", _ADVICE)
PulsarSink = absent("PulsarSink", _ADVICE)
PulsarSinkBuilder = absent("PulsarSinkBuilder", _ADVICE)
PulsarSource = absent("PulsarSource", _ADVICE)
PulsarSourceBuilder = absent("PulsarSourceBuilder", _ADVICE)
RangeGenerator = absent("RangeGenerator", _ADVICE)
StartCursor = absent("StartCursor", _ADVICE)
StopCursor = absent("StopCursor", _ADVICE)
TopicRoutingMode = absent("TopicRoutingMode", _ADVICE)

__all__ = [
    "MessageDelayer",
    "PulsarSink",
    "PulsarSinkBuilder",
    "PulsarSource",
    "PulsarSourceBuilder",
    "RangeGenerator",
    "StartCursor",
    "StopCursor",
    "TopicRoutingMode",
]
