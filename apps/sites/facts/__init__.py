"""Pages → what a website says about its business, each with its source."""

from apps.sites.facts.business import Source, business_of
from apps.sites.facts.gather import facts_of
from apps.sites.facts.things import texts_of, things_of

__all__ = ["Source", "business_of", "facts_of", "texts_of", "things_of"]
