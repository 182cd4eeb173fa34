"""The names of PyFlink's source for changing Kafka clusters. They can be imported, but not used yet."""

from penstock.base.absent_names import absent

_ADVICE = "Kafka is read with KafkaSource, which finds new topics and partitions of one cluster by itself"

DynamicKafkaSource = absent("DynamicKafkaSource", _ADVICE)
DynamicKafkaSourceBuilder = absent("DynamicKafkaSourceBuilder", _ADVICE)
KafkaMetadataService = absent("KafkaMetadataService", _ADVICE)
KafkaRecordDeserializationSchema = absent("KafkaRecordDeserializationSchema", _ADVICE)
KafkaStreamSetSubscriber = absent("KafkaStreamSetSubscriber", _ADVICE)
KafkaStreamSubscriber = absent("KafkaStreamSubscriber", _ADVICE)
SingleClusterTopicMetadataService = absent("SingleClusterTopicMetadataService", _ADVICE)
StreamPatternSubscriber = absent("StreamPatternSubscriber", _ADVICE)

__all__ = [
    "DynamicKafkaSource",
    "DynamicKafkaSourceBuilder",
    "KafkaMetadataService",
    "KafkaRecordDeserializationSchema",
    "KafkaStreamSetSubscriber",
    "KafkaStreamSubscriber",
    "SingleClusterTopicMetadataService",
    "StreamPatternSubscriber",
]
