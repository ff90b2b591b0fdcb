"""Jobs that wait for each other, as chains and groups of them: what `Board.flow` posts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..arguments import Name, check_choice
from .posting import ON_FAILURE, After, Node, check_parts

if TYPE_CHECKING:
    from .posting import OnFailure


class Flow(list[Node]):
    """The jobs of a flow; the labels of those that begin it, and of those after which it is done."""

    def __init__(self, nodes: Sequence[Node], first: Sequence[Name], last: Sequence[Name]) -> None:
        super().__init__(nodes)
        self.first, self.last = list(first), list(last)


def group(*parts: Node | Flow) -> Flow:
    """Jobs, or flows, side by side."""
    flows = [_flow(part) for part in parts]
    return Flow(
        [node for flow in flows for node in flow],
        [label for flow in flows for label in flow.first],
        [label for flow in flows for label in flow.last],
    )


def chain(*parts: Node | Flow, onfailure: OnFailure = "hold") -> Flow:
    """Jobs, or flows, one after the other; `onfailure`: what becomes of the next when one fails.

    board.flow(chain(fetch.job(url), group(shrink.job(100), shrink.job(800)), publish.job()))
    """
    check_choice(onfailure, "onfailure", ON_FAILURE)
    whole = Flow([], [], [])
    for flow in filter(None, map(_flow, parts)):
        if whole:
            later = set(flow.first)
            after = After(whole.last, onfailure)
            nodes = [_waiting(node, after) if node.label in later else node for node in flow]
            flow = Flow(nodes, flow.first, flow.last)
        whole = Flow([*whole, *flow], whole.first or flow.first, flow.last)
    return whole


def _flow(part: Node | Flow) -> Flow:
    if not isinstance(part, Flow):
        check_parts([part])
    return part if isinstance(part, Flow) else Flow([part], [part.label], [part.label])


def _waiting(node: Node, after: After) -> Node:
    """The node, which waits for these as well."""
    options: dict[str, Any] = {**node.options}
    own = options.get("after") or []
    own = [own] if isinstance(own, After) else list(own)
    if own and not isinstance(own[0], After):
        own = [After(own)]
    return Node(node.label, node.payload, **{**options, "after": [*own, after]})
