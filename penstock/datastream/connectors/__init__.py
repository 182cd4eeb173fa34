"""Connectors to systems outside the job. Names are looked up in their modules at first use."""

from penstock.base.lazy_names import lazy_names

_NAMES_BY_MODULE = {
    ".base": "BadRecord BadRecords Boundedness Committer DeliveryGuarantee GlobalCommitter Sink SinkWriter Source",
    ".cassandra": "CassandraSink ClusterBuilder ConsistencyLevel MapperOptions",
    ".elasticsearch": "Elasticsearch7SinkBuilder ElasticsearchEmitter ElasticsearchSink FlushBackoffType",
    ".file_system": """
        BucketAssigner FileCompactor FileCompactStrategy FileSink FileSource OutputFileConfig RollingPolicy
        StreamFormat StreamingFileSink
    """,
    ".jdbc": "JdbcConnectionOptions JdbcExecutionOptions JdbcSink JdbcSource",
    ".kafka": """
        FlinkKafkaConsumer FlinkKafkaProducer KafkaOffsetResetStrategy KafkaOffsetsInitializer
        KafkaRecordSerializationSchema KafkaSink KafkaSource KafkaTopicPartition Semantic
    """,
    ".number_seq": "NumberSequenceSource",
    ".rabbitmq": "RMQConnectionConfig RMQSink RMQSource",
    ".two_phase_commit": "TwoPhaseCommitSinkFunction",
    ".write_ahead": "CheckpointCommitter FileCheckpointCommitter DatabaseCheckpointCommitter GenericWriteAheadSink",
}

__getattr__, __dir__ = lazy_names(__name__, _NAMES_BY_MODULE)
