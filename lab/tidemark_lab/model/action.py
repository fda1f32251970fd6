"""Actions of the specification, the calls of them, and traces: runs made of such calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tidemark_lab.model.state import Constants, ModelState

Arguments = tuple[int | None, ...]
Successors = Iterator[tuple[Arguments, ModelState]]
Rule = Callable[[Constants, ModelState], Successors]


class Action(NamedTuple):
    """An action: its name in the specification, its parameters, and its rule."""

    name: str
    parameters: tuple[str, ...]
    successors: Rule


class ActionCall(NamedTuple):
    """An action with its arguments. Replicas count from 0."""

    name: str
    parameters: tuple[str, ...]
    arguments: Arguments


class Step(NamedTuple):
    """An action call and the state that follows."""

    action: ActionCall
    state: ModelState


class Trace(NamedTuple):
    """A run: its first state and its steps."""

    initial: ModelState
    steps: tuple[Step, ...]

    @property
    def states(self) -> tuple[ModelState, ...]:
        """All states in order, including the first."""
        return (self.initial, *(step.state for step in self.steps))

    @property
    def last(self) -> ModelState:
        return self.steps[-1].state if self.steps else self.initial


def action(name: str, *parameters: str) -> Callable[[Rule], Action]:
    """Makes an Action of a function; `parameters` name the arguments that it yields."""
    return lambda rule: Action(name, parameters, rule)


def successors(
    actions: tuple[Action, ...], constants: Constants, state: ModelState
) -> Iterator[Step]:
    """Every step that is possible in a state, in the order of the actions."""
    for each in actions:
        for arguments, successor in each.successors(constants, state):
            yield Step(ActionCall(each.name, each.parameters, arguments), successor)
