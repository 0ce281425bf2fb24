"""A call that fails and the recipes of the rulebook in; the replacements that they suggest for it out."""

from __future__ import annotations

from collections.abc import Iterator

from migrate_lens.remedies.fix.slots import Form, Site
from migrate_lens.remedies.fix.strategies import Candidate, Kind, Troubled
from migrate_lens.rulebook.recipes import SLOT, Recipe, load

_FORMS = (Form.FUNCTION, Form.METHOD, Form.OPERATOR, Form.ATTRIBUTE)


def by_recipe(call: Troubled) -> Iterator[Candidate]:
    """What the recipes suggest for a call."""
    for recipe in answering(call.api, call.symptom):
        template = filled(recipe, call.site)
        if template is not None:
            yield Candidate(Kind.EQUAL_API, template, recipe.why)


def answering(api: str, symptom: str) -> Iterator[Recipe]:
    """The recipes for what shows so at an API."""
    return (recipe for recipe in load().recipes if recipe.answers(api, symptom))


def filled(recipe: Recipe, site: Site) -> str | None:
    """A recipe's replacement with the slots of a call; None where the call gives it something that it does not know."""
    bound = _bound(recipe, site)
    if bound is None or any(name not in bound for name in recipe.given):
        return None
    if not bound.keys() <= set(recipe.slots):
        return None
    texts: dict[str, str] = {}
    for name in recipe.slots:
        text = bound.get(name, recipe.parameters[name])
        if text is None:
            return None
        texts[name] = text
    return SLOT.sub(lambda slot: texts[slot[1]], recipe.replace)


def _bound(recipe: Recipe, site: Site) -> dict[str, str] | None:
    """Parameters and the slots that are given for them."""
    if site.form not in _FORMS:
        return None
    names = list(recipe.parameters)
    bound: dict[str, str] = {}
    for number, keyword in enumerate(site.keywords):
        by_position = names[number] if number < len(names) else ""
        name = keyword or by_position
        if name not in recipe.parameters or name in bound:
            return None
        bound[name] = f"{{{number}}}"
    return bound
