"""The options that name the reporters. Options of one reporter begin with `metrics.reporter.<name>.`."""

from __future__ import annotations

from penstock.base.options.option import Option

OPTIONS = [Option("metrics.reporters", str), Option("traces.reporters", str)]
