"""A call that fails under the target in; every way to say it that is to be tried, the likeliest first, out."""

from __future__ import annotations

from collections.abc import Iterator

from migrate_lens.remedies.fix import strategies
from migrate_lens.remedies.fix.recipes import by_recipe
from migrate_lens.remedies.fix.strategies import Candidate, Strategy, Troubled

# In the order in which they are tried: what the rules know for the very API first, then from the plainest on.
STRATEGIES: tuple[Strategy, ...] = (
    by_recipe,
    strategies.without_in_place,
    strategies.positional,
    strategies.renamed,
    strategies.into_buffer,
    strategies.through_import,
    strategies.as_operator,
    strategies.the_other_form,
    strategies.result_cast,
    strategies.operand_cast,
    strategies.scalar_operand,
    strategies.unpacked,
    strategies.gated,
    strategies.in_place_by_copy,
)


def candidates(call: Troubled) -> Iterator[Candidate]:
    """All candidates of all strategies, none twice."""
    seen: set[str] = set()
    for strategy in STRATEGIES:
        for candidate in strategy(call):
            if candidate.template not in seen:
                seen.add(candidate.template)
                yield candidate
