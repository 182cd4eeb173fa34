"""Connectors to systems outside the job. Names are looked up in their modules when they are first used."""

from importlib import import_module
from typing import Any

_NAMES_OF_MODULES = {
    "base": "BadRecord BadRecords Boundedness Committer DeliveryGuarantee GlobalCommitter Sink SinkWriter Source",
    "cassandra": "CassandraSink ClusterBuilder ConsistencyLevel MapperOptions",
    "elasticsearch": "Elasticsearch7SinkBuilder ElasticsearchEmitter ElasticsearchSink FlushBackoffType",
    "file_system": """
        BucketAssigner FileCompactor FileCompactStrategy FileSink FileSource OutputFileConfig RollingPolicy
        StreamFormat StreamingFileSink
    """,
    "jdbc": "JdbcConnectionOptions JdbcExecutionOptions JdbcSink JdbcSource",
    "kafka": """
        FlinkKafkaConsumer FlinkKafkaProducer KafkaOffsetResetStrategy KafkaOffsetsInitializer
        KafkaRecordSerializationSchema KafkaSink KafkaSource KafkaTopicPartition Semantic
    """,
    "number_seq": "NumberSequenceSource",
    "rabbitmq": "RMQConnectionConfig RMQSink RMQSource",
    "two_phase_commit": "TwoPhaseCommitSinkFunction",
    "write_ahead": "CheckpointCommitter FileCheckpointCommitter DatabaseCheckpointCommitter GenericWriteAheadSink",
}
_MODULE_OF = {name: module for module, names in _NAMES_OF_MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
