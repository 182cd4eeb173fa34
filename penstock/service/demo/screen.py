"""The terminal output of the demo."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text


class Screen:
    """A table of the newest results, which is redrawn again and again."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._readings: dict[str, tuple[float, float, int]] = {}
        self._hottest: dict[str, float] = {}
        self._alerts: deque[tuple[str, str, str]] = deque(maxlen=8)
        self._seen = 0
        self.state = ""
        """State of the job if it does not run, else empty."""

    def line(self, text: str) -> None:
        """Take a line of the job's output. Lines that are no results are ignored."""
        try:
            kind, *row = json.loads(text.partition("> ")[2] or text)
        except (ValueError, TypeError):
            return
        takers: dict[str, Callable[..., None]] = {
            "reading": self._reading,
            "alert": self._alert,
            "hottest": self._hot,
        }
        if kind in takers:
            takers[kind](*row)

    def _reading(self, sensor: str, temperature: float, average: float) -> None:
        self._seen += 1
        self._readings[sensor] = (temperature, average, self._readings.get(sensor, (0.0, 0.0, 0))[2] + 1)

    def _alert(self, sensor: str, text: str) -> None:
        self._alerts.append((time.strftime("%H:%M:%S"), sensor, text))

    def _hot(self, sensor: str, temperature: float) -> None:
        self._hottest[sensor] = temperature

    def __rich__(self) -> Group:
        table = Table("sensor", "now °C", "average °C", "hottest of 10 s", "readings", expand=True)
        for sensor, (now, average, count) in sorted(self._readings.items()):
            table.add_row(sensor, f"{now:.1f}", f"{average:.2f}", self._hottest_text(sensor), str(count))
        alerts = Text("\n".join(f"{when}  {sensor}  {text}" for when, sensor, text in self._alerts) or "none yet")
        foot = Text(f"{self._seen} readings · Ctrl-C stops · the job's page: ", style="dim")
        foot.append(self._address, style="bold")
        parts: list[Any] = [table, Panel(alerts, title="alerts"), foot]
        if self.state:
            parts.append(Text(f"The job is {self.state.lower()}.", style="yellow"))
        return Group(*parts)

    def _hottest_text(self, sensor: str) -> str:
        return f"{self._hottest[sensor]:.1f}" if sensor in self._hottest else ""

    def lines(self) -> str:
        """Return a summary of the results in one line."""
        return f"{self._seen} readings from {len(self._readings)} sensors, {len(self._alerts)} recent alerts"
