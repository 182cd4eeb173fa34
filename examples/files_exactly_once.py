"""Reads orders from files, fails once, and writes files by shop in which every order is exactly once."""

from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.common import Encoder, RestartStrategies, WatermarkStrategy
from penstock.datastream import MapFunction, RuntimeContext, SinkFunction, StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    OutputFileConfig,
    StreamFormat,
)

SHOPS = ("Bergen", "Oslo", "Tromsø")
ORDERS = 600
BROKEN = 400  # the order at which the first attempt fails


class Check(MapFunction):
    """Lets orders pass, and tells in which attempt of the job it did so."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value: str) -> str:
        if value.startswith(f"{BROKEN},") and self.attempt == 0:
            raise ValueError(f"order {BROKEN} cannot be checked")
        return f"{value},{self.attempt}"


class ByShop(BucketAssigner):
    """A folder for each shop."""

    def get_bucket_id(self, element: str, context: SinkFunction.Context) -> str:
        return f"shop={element.split(',')[1]}"


def write_orders(folder: Path) -> None:
    folder.mkdir()
    for first in range(0, ORDERS, 100):
        orders = [f"{number},{SHOPS[number % 3]}\n" for number in range(first, first + 100)]
        (folder / f"orders-{first}.csv").write_text("".join(orders))


def run(orders: Path, checked: Path, checkpoints: Path) -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
    environment.enable_checkpointing(50)  # milliseconds
    environment.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoints))
    environment.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 10))
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(orders)).build()
    sink = (
        FileSink.for_row_format(str(checked), Encoder.simple_string_encoder())
        .with_bucket_assigner(ByShop())
        .with_output_file_config(OutputFileConfig.builder().with_part_suffix(".csv").build())
        .build()
    )
    strategy = WatermarkStrategy.no_watermarks()
    lines = environment.from_source(source, strategy, "orders", rate_limit=1000).uid("orders")
    lines.map(Check()).sink_to(sink).uid("checked")
    environment.execute("files exactly once")


def main() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_orders(folder / "orders")
        run(folder / "orders", folder / "checked", folder / "checkpoints")
        lines: list[list[str]] = []
        for shop in sorted((folder / "checked").iterdir()):
            found = [line.split(",") for file in shop.glob("*.csv") for line in file.read_text().splitlines()]
            print(f"{shop.name}: {len(found)} orders, {len({line[0] for line in found})} of them different")
            lines += found
    print(f"attempts: {1 + max(int(attempt) for _, _, attempt in lines)}")


if __name__ == "__main__":
    main()
