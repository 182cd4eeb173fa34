"""Displays of streams and environments: the plan of their operators. Showing it runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.base.display.html_parts import failure, head, whole
from penstock.common.typeinfo import TypeInformation
from penstock.errors import PenstockError
from penstock.graph.plan import Plan
from penstock.graph.plan_picture import as_html
from penstock.graph.plan_text import as_text
from penstock.graph.transformations import StreamRef, Transformation
from penstock.service.launch.submission import plan_of_operators

if TYPE_CHECKING:
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


class _ShowsPlan:
    """Base of what is shown as a plan: as text by `repr`, and as a graph in notebooks."""

    def _plan_to_show(self) -> Plan | None:
        """Return the plan; None if there is none yet."""
        raise NotImplementedError

    def _title_to_show(self) -> str:
        """Return a line that says what this is."""
        return type(self).__name__

    def __repr__(self) -> str:
        try:
            plan = self._plan_to_show()
            return self._title_to_show() + ("" if plan is None else "\n" + as_text(plan).rstrip())
        except PenstockError as error:
            return f"{type(self).__name__}: {error}"

    def _repr_html_(self) -> str:
        try:
            plan = self._plan_to_show()
            title = self._title_to_show()
            return whole(head(title)) if plan is None else as_html(plan, title)
        except PenstockError as error:
            return whole(head(type(self).__name__), failure(str(error)))


class ShowsProgram(_ShowsPlan):
    """Displays an environment as the plan of the program so far."""

    sinks: list[Transformation]
    _sources: list[Transformation]

    def _plan(self, job_name: str | None) -> Plan:
        raise NotImplementedError

    def get_parallelism(self) -> int:
        raise NotImplementedError

    def _plan_to_show(self) -> Plan | None:
        return self._plan(None) if self.sinks or self._sources else None

    def _title_to_show(self) -> str:
        nothing = "" if self.sinks or self._sources else ", no operators yet"
        return f"{type(self).__name__} with parallelism {self.get_parallelism()}{nothing}"


class ShowsStream(_ShowsPlan):
    """Displays a stream as the plan of the operators that its records come from."""

    _environment: StreamExecutionEnvironment
    refs: tuple[StreamRef, ...]

    def get_type(self) -> TypeInformation[Any] | None:
        raise NotImplementedError

    def _plan_to_show(self) -> Plan:
        ends, env = [ref.node for ref in self.refs], self._environment
        plan = plan_of_operators(env, ends, None)
        # Automatic uids depend on the operators of the whole program.
        uids = {id(node.operator): node.uid for node in plan_of_operators(env, [*env.sinks, *ends], None).nodes}
        for node in plan.nodes:
            node.uid = uids[id(node.operator)]
        return plan

    def _title_to_show(self) -> str:
        stated = self.get_type()
        kind = "" if stated is None else f" of {stated}"
        return f"{type(self).__name__}{kind} from {self._title_of_inputs()}"

    def _title_of_inputs(self) -> str:
        return " and ".join(f"'{ref.node.name}'" for ref in self.refs)
