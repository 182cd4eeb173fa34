"""The names of PyFlink's connector for Kinesis. They can be imported; the connector does not exist yet."""

from penstock.base.absent_names import absent

_ADVICE = (
    "there is no connector for Kinesis; write a Source or a Sink (docs/connectors), or read the stream "
    "with Spark and env.from_spark(...)"
)

FlinkKinesisConsumer = absent("FlinkKinesisConsumer", _ADVICE)
KinesisDeserializationSchema = absent("KinesisDeserializationSchema", _ADVICE)
KinesisFirehoseSink = absent("KinesisFirehoseSink", _ADVICE)
KinesisFirehoseSinkBuilder = absent("KinesisFirehoseSinkBuilder", _ADVICE)
KinesisShardAssigner = absent("KinesisShardAssigner", _ADVICE)
KinesisStreamsSink = absent("KinesisStreamsSink", _ADVICE)
KinesisStreamsSinkBuilder = absent("KinesisStreamsSinkBuilder", _ADVICE)
PartitionKeyGenerator = absent("PartitionKeyGenerator", _ADVICE)
WatermarkTracker = absent("WatermarkTracker", _ADVICE)

__all__ = [
    "FlinkKinesisConsumer",
    "KinesisDeserializationSchema",
    "KinesisFirehoseSink",
    "KinesisFirehoseSinkBuilder",
    "KinesisShardAssigner",
    "KinesisStreamsSink",
    "KinesisStreamsSinkBuilder",
    "PartitionKeyGenerator",
    "WatermarkTracker",
]
