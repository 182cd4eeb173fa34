"""K-means: a bulk iteration moves the centres of clusters until they stay where they are."""

from typing import Any

from penstock.dataset import DataSet, ExecutionEnvironment
from penstock.dataset.aggregators import DoubleSumAggregator, DoubleZeroConvergence
from penstock.dataset.functions import RichMapFunction

POINTS = [(1.0, 1.0), (1.5, 2.0), (0.5, 1.5), (8.0, 8.0), (9.0, 8.5), (8.5, 9.5), (1.0, 9.0), (2.0, 8.0)]
START = [(1, 0.0, 0.0), (2, 5.0, 5.0), (3, 0.0, 10.0)]


class AssignToNearest(RichMapFunction):
    """Adds the number of the nearest centre to a point."""

    def open(self, runtime_context: Any) -> None:
        self.centres = runtime_context.get_broadcast_variable("centres")

    def map(self, value: tuple[float, float]) -> tuple[int, float, float, int]:
        x, y = value
        number, _, _ = min(self.centres, key=lambda centre: (centre[1] - x) ** 2 + (centre[2] - y) ** 2)
        return number, x, y, 1


class MeasureMove(RichMapFunction):
    """Adds up how far the centres have moved in this superstep."""

    def open(self, runtime_context: Any) -> None:
        self.moved = runtime_context.get_iteration_aggregator("moved")

    def map(self, value: Any) -> tuple[int, float, float]:
        (number, x, y), (_, old_x, old_y) = value
        self.moved.aggregate(abs(x - old_x) + abs(y - old_y))
        return number, x, y


def find_centres(points: DataSet, start: DataSet) -> DataSet:
    """Return the centres of the clusters of some points."""
    centres = start.iterate(100)
    centres.register_aggregation_convergence_criterion("moved", DoubleSumAggregator(), DoubleZeroConvergence())
    sums = points.map(AssignToNearest()).with_broadcast_set(centres, "centres").group_by(0).sum(1).and_sum(2).and_sum(3)
    means = sums.map(lambda total: (total[0], total[1] / total[3], total[2] / total[3]))
    return centres.close_with(means.join(centres).where(0).equal_to(0).map(MeasureMove()))


def main() -> None:
    env = ExecutionEnvironment.get_execution_environment().set_parallelism(2)
    for number, x, y in sorted(find_centres(env.from_collection(POINTS), env.from_collection(START)).collect()):
        print(f"cluster {number}: centre {x:.2f}, {y:.2f}")


if __name__ == "__main__":
    main()
