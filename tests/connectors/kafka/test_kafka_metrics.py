"""What Kafka's source and sink say of themselves: offsets, lag, commits, records sent."""

from penstock.common import SimpleStringSchema, WatermarkStrategy
from penstock.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from penstock.testing import in_process
from tests.connectors.kafka.jobs import environment, text_sink
from tests.waiting import until


def test_offsets_lag_commits_and_what_was_sent(kafka, name, tmp_path):
    kafka.create_topic(name, 1)
    kafka.create_topic(f"{name}-out", 1)
    kafka.send(name, [f"r{number}" for number in range(50)], 0)
    source = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap).set_topics(name).set_group_id(name)
    source.set_value_only_deserializer(SimpleStringSchema())
    source.set_starting_offsets(KafkaOffsetsInitializer.earliest())
    with in_process():
        env = environment(execution_checkpointing_interval="50 ms", execution_checkpointing_dir=tmp_path.as_uri())
        stream = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "Kafka").uid("in")
        stream.sink_to(text_sink(kafka, f"{name}-out").build()).uid("out")
        job = env.execute_async("measured")._job
        try:
            reader = "in.KafkaSourceReader"
            partition = f"{reader}.topic.{name}.partition.0"

            def shown():
                slots = job.record().slots
                return slots[0].metrics if slots else {}

            until(lambda: shown().get(f"{partition}.committedOffset") == 50)
            found = shown()
            assert found[f"{partition}.currentOffset"] == 49
            assert found[f"{reader}.KafkaConsumer.records-consumed-total"] == 50
            assert found[f"{reader}.commitsSucceeded"] >= 1 and found[f"{reader}.commitsFailed"] == 0
            assert found["in.pendingRecords"] == 0 and found[f"{reader}.KafkaConsumer.records-lag-max"] == 0
            assert found["in.numRecordsInErrors"] == 0
            assert found["out.numRecordsSend"] == 50 and found["out.numRecordsSendErrors"] == 0
            assert found["out.currentSendTime"] >= 0
        finally:
            job.cancel()
