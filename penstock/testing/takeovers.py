"""Several drivers of one job in the crash simulator: at any step one is stopped, another takes over, the first goes on.

One seed decides at which steps drivers come and how long each of them runs before it is stopped in favour of another.
At most one runs at a time, so that a seed always tells the same story. Slots and drivers may die as well.

    outcome = simulate_takeovers(build, seed=17, steps=simulate(build, seed=0).steps)
    assert outcome.store.visible("numbers") == expected
    assert outcome.endings == ["displaced", "finished"]
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.base.storage import Storage, split_url
from penstock.common.configuration import Configuration
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.engine.checkpoint.ownership import last_start
from penstock.engine.checkpoint.rules import line
from penstock.engine.checkpoint.store import FolderStore
from penstock.engine.messages.owner_token import read_or_none
from penstock.errors import JobDisplaced
from penstock.testing.crashes import (
    JOB_ID,
    MOST_DRIVERS,
    Build,
    Crash,
    Outcome,
    Schedule,
    chosen_crashes,
    chosen_settings,
    simulate_world,
)

TURNS = (1, 1, 2, 3, 5, 10, 30, 100, 300, 1000, 5000)
"""Numbers of steps, one chosen by chance, after which another driver may run."""
CRITICAL = ("_metadata", "/owner/", "committing", "aborting", "deleting")
"""Words in the descriptions of steps before which the ownership of the job matters most."""
MOST_TAKEOVERS = 4
SOON = 60
SILENCE = 60.0
"""Seconds without any step after which the simulation counts as stuck."""


@dataclass
class TakeoverOutcome(Outcome):
    """The outcome of a simulation with several drivers."""

    endings: list[str] = field(default_factory=list)
    """End of each driver, in the order of their start: finished, displaced, died, or an error."""


def simulate_takeovers(build: Build, seed: int, steps: dict[str, int], crashes: int | None = None) -> TakeoverOutcome:
    """Run a program to its end while drivers take it from each other.

    `steps` has the number of steps of each kind in an uninterrupted run.
    """
    schedule = Schedule(seed)
    settings = {**chosen_settings(schedule.random), "execution.takeover": "true"}
    schedule.crashes = chosen_crashes(
        schedule.random, schedule.random.choice([0, 0, 1, 2]) if crashes is None else crashes, steps
    )
    turns = _Turns(schedule, lambda: _run_driver(build, settings), sum(steps.values()))
    with simulate_world(schedule, settings):
        turns.play()
    drivers, steps_done = len(turns.endings), dict(schedule.steps)
    return TakeoverOutcome(seed, schedule.store, drivers, schedule.log, steps_done, settings, endings=turns.endings)


def _run_driver(build: Build, settings: dict[str, str]) -> None:
    configuration = Configuration()
    for name, value in settings.items():
        configuration.set_string(name, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    build(environment)
    environment.execute("simulated job")


class _Driver:
    """A simulated driver process, which runs only when it has its turn."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.turn = threading.Event()

    def await_turn(self) -> None:
        self.turn.wait()
        self.turn.clear()


class _Turns:
    """Decides which driver runs. The running driver calls `step` repeatedly, and waits there while it is stopped."""

    def __init__(self, schedule: Schedule, run: Callable[[], None], expected: int) -> None:
        """Prepare the simulation. `expected` is the number of steps of an uninterrupted run."""
        self._schedule = schedule
        self._run = run
        self._expected = expected
        self._coming = schedule.random.randint(1, MOST_TAKEOVERS)
        self._last_came = -SOON
        self._steps = 0
        self._left = 0
        self._living: list[_Driver] = []
        self._running: _Driver | None = None
        self._all_ended = threading.Event()
        self.endings: list[str] = []
        schedule.between = self.step

    def play(self) -> None:
        """Run drivers until one of them has finished the job and all others have noticed."""
        while "finished" not in self.endings:
            if len(self.endings) > MOST_DRIVERS:
                raise AssertionError(f"the job does not come to its end: {self.endings}, {self._schedule.log}")
            self._all_ended.clear()
            self._give_turn(self._new_driver())
            self._await_all()

    def _await_all(self) -> None:
        done = -1
        while not self._all_ended.wait(SILENCE):
            if done == self._steps:
                raise AssertionError(f"the simulation is stuck after {done} steps: {self.endings}")
            done = self._steps

    # --- whose turn it is ---
    def step(self, what: str) -> None:
        """Pass a step of the running driver. Other drivers may run first."""
        self._steps += 1
        self._left -= 1
        driver = self._running
        assert driver is not None
        chosen = driver
        if self._coming and self._schedule.random.random() < self._likelihood(what):
            chosen = self._new_driver()
            self._coming -= 1
            self._last_came = self._steps
        elif self._left < 0:
            chosen = self._schedule.random.choice(self._living)
        if chosen is not driver:
            self._give_turn(chosen)
            driver.await_turn()

    def _likelihood(self, what: str) -> float:
        """Return the likelihood of a new driver before this step.

        It is higher at critical steps and soon after another driver.
        """
        usual = 1 / self._expected
        critical = 20 if any(word in what for word in CRITICAL) else 1
        return usual * critical * (20 if self._steps - self._last_came < SOON else 1)

    def _give_turn(self, driver: _Driver) -> None:
        self._running = driver
        self._left = self._schedule.random.choice(TURNS)
        driver.turn.set()

    # --- coming and going ---
    def _new_driver(self) -> _Driver:
        driver = _Driver(len(self.endings))
        self.endings.append("running")
        self._living.append(driver)
        threading.Thread(target=self._live, args=(driver,), name=f"driver {driver.number}", daemon=True).start()
        return driver

    def _live(self, driver: _Driver) -> None:
        driver.await_turn()
        self.endings[driver.number] = self._outcome()
        self._living.remove(driver)
        if self._living:
            self._give_turn(self._schedule.random.choice(self._living))
        else:
            self._all_ended.set()

    def _outcome(self) -> str:
        try:
            self._run()
        except Crash:
            return "died"
        except JobDisplaced:
            return "displaced" + _damage()
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
        return "finished"


def _damage() -> str:
    """Return the damage of the owner's newest checkpoint, or '' if every file is there with its full size."""
    folder = FolderStore("crash://checkpoints", JOB_ID)
    counting = line(folder.complete(), last_start(folder.url()))
    for slot in counting[-1].slots if counting else ():
        for file in slot.files:
            place, name = split_url(file.url)
            found = file.inline if file.inline is not None else read_or_none(Storage(place), name)
            if found is None or len(found) != file.size:
                return f", and {file.url} of checkpoint {counting[-1].number} is not as it was"
    return ""
