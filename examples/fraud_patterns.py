"""Finds cards that are tried out with small payments before a large one, and those where the large one never came."""

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.cep import (
    CEP,
    AfterMatchSkipStrategy,
    ConditionContext,
    Pattern,
    PatternProcessFunction,
    TimedOutPartialMatchHandler,
)
from penstock.common import Duration, WatermarkStrategy
from penstock.datastream import OutputTag, StreamExecutionEnvironment

TRIED_OUT = OutputTag("tried out")


@dataclass(frozen=True)
class Payment:
    card: str
    amount: int
    second: int


PAYMENTS = [
    Payment("ann", 2, 1),
    Payment("bob", 80, 2),
    Payment("ann", 1, 3),
    Payment("cem", 3, 5),
    Payment("ann", 900, 9),
    Payment("cem", 2, 12),
    Payment("bob", 700, 15),
    Payment("cem", 1, 95),
]


class Alarm(PatternProcessFunction, TimedOutPartialMatchHandler):
    """Tells of each match, and of small payments that nothing followed."""

    def process_match(self, match: dict[str, list[Payment]], ctx: PatternProcessFunction.Context) -> Iterator[str]:
        large = match["large"][0]
        yield f"{large.card}: {len(match['small'])} small payments, then {large.amount} in second {large.second}"

    def process_timed_out_match(self, match: dict[str, list[Payment]], ctx: PatternProcessFunction.Context) -> None:
        small = match["small"]
        if len(small) > 1:
            ctx.output(TRIED_OUT, f"{small[0].card}: {len(small)} small payments, and nothing after them")


def is_small(payment: Payment) -> bool:
    return payment.amount < 5


def is_far_larger(payment: Payment, ctx: ConditionContext[Payment]) -> bool:
    return payment.amount > 100 * max(small.amount for small in ctx.get_events_for_pattern("small"))


def fraud() -> Pattern[Payment]:
    small = Pattern.begin("small", AfterMatchSkipStrategy.skip_past_last_event()).where(is_small).times_or_more(2)
    return small.followed_by("large").where(is_far_larger).within(Duration.of_minutes(1))


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=1)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda p: p.second * 1000)
    payments = environment.from_collection(PAYMENTS).assign_timestamps_and_watermarks(times)
    alarms = CEP.pattern(payments.key_by(lambda payment: payment.card), fraud()).process(Alarm())
    alarms.print("alarm")
    alarms.get_side_output(TRIED_OUT).print("watch")
    environment.execute("fraud")


if __name__ == "__main__":
    main()
