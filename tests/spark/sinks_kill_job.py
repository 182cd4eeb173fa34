"""The job that gets killed with every exactly-once sink at its end, each against the real system.

    python sinks_kill_job.py FOLDER MASTER

FOLDER/systems.json says where the systems are. Numbers are counted as in kill_job.py, and go to files, a Kafka topic,
and two tables of PostgreSQL, one through an exactly-once JdbcSink and one through transactions that it prepares.
"""

import json
import sys
from pathlib import Path
from uuid import uuid4

import psycopg

from penstock.common import Encoder, SimpleStringSchema, Types
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.file_system import FileSink, RollingPolicy
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from penstock.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from penstock.datastream.connectors.two_phase_commit import TwoPhaseCommitSinkFunction
from tests.spark.kill_job import Numbers, count, environment


class PreparedTransactions(TwoPhaseCommitSinkFunction):
    """Every transaction is one of PostgreSQL's own, prepared at the checkpoint."""

    def __init__(self, dsn):
        super().__init__()
        self.dsn = dsn
        self.rows = {}

    def begin_transaction(self):
        return uuid4().hex

    def invoke(self, transaction, value, context):
        self.rows.setdefault(transaction, []).append((value,))

    def pre_commit(self, transaction):
        """A process that is stopped before it prepares its transaction has lost it when it goes on."""
        impatient = "-c idle_in_transaction_session_timeout=2000"
        with psycopg.connect(self.dsn, autocommit=True, options=impatient) as database:
            database.execute("BEGIN")
            database.cursor().executemany("INSERT INTO prepared VALUES (%s)", self.rows.pop(transaction, []))
            database.execute(f"PREPARE TRANSACTION '{transaction}'")

    def commit(self, transaction):
        self._end(transaction, "COMMIT PREPARED")

    def abort(self, transaction):
        self.rows.pop(transaction, None)
        self._end(transaction, "ROLLBACK PREPARED")

    def _end(self, transaction, how):
        """End a prepared transaction; one that is no longer prepared was ended before."""
        with psycopg.connect(self.dsn, autocommit=True) as database:
            known = database.execute("SELECT 1 FROM pg_prepared_xacts WHERE gid = %s", (transaction,)).fetchone()
            if known:
                database.execute(f"{how} '{transaction}'")


def main(folder, master):
    env = environment(folder, master)
    numbers = env.add_source(Numbers(folder), type_info=Types.LONG()).uid("numbers")
    count(numbers, folder)
    write_everywhere(numbers, folder)
    env.execute("counting")
    Path(folder, "ended").touch()


def write_everywhere(numbers, folder):
    """Write a stream into every exactly-once sink there is."""
    systems = json.loads(Path(folder, "systems.json").read_text())
    texts = numbers.map(str, Types.STRING()).uid("texts")
    files = FileSink.for_row_format(f"{folder}/files", Encoder.simple_string_encoder())
    texts.sink_to(files.with_rolling_policy(RollingPolicy.default_rolling_policy(rollover_interval=2000)).build()).uid(
        "files"
    )
    schema = KafkaRecordSerializationSchema.builder().set_topic("numbers")
    kafka = KafkaSink.builder().set_bootstrap_servers(systems["kafka"]).set_transactional_id_prefix("kills")
    kafka = kafka.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    kafka = kafka.set_record_serializer(schema.set_value_serialization_schema(SimpleStringSchema()).build())
    texts.sink_to(kafka.build()).uid("kafka")
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(systems["url"])
    options = options.with_user_name(systems["user"]).with_password(systems["password"]).build()
    rows = numbers.map(lambda number: (number,), Types.TUPLE([Types.LONG()])).uid("rows")
    rows.sink_to(JdbcSink.exactly_once_sink("INSERT INTO jdbc VALUES (?)", Types.TUPLE([Types.LONG()]), options)).uid(
        "jdbc"
    )
    numbers.add_sink(PreparedTransactions(systems["dsn"])).uid("prepared")


if __name__ == "__main__":
    main(*sys.argv[1:])
