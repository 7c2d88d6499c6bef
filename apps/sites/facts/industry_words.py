"""Words by which businesses call themselves."""

import re

from apps.sites.facts.business_types import INDUSTRY_PHRASES

# Those that no type of schema.org has.
_MORE = (
    "accountancy firm, agency, architecture firm, architecture practice, barber shop, "
    "barbershop, bistro, boutique, brewpub, builders merchant, butcher shop, cafe, café, "
    "car garage, car repair shop, catering company, chiropractic clinic, cleaning company, "
    "coffee house, coffeehouse, coffee roastery, construction company, consulting firm, "
    "consultancy, coworking space, dance school, dance studio, deli, dental clinic, "
    "dental office, dental practice, design agency, design studio, driving school, "
    "estate agency, eye clinic, farm shop, fitness studio, flower shop, food truck, "
    "funeral home, garden center, garden centre, gift shop, guest house, guesthouse, "
    "hair studio, hairdresser, inn, insurance broker, juice bar, kennel, landscaping company, "
    "language school, law firm, law office, leisure centre, marketing agency, martial arts school, "
    "medical center, medical centre, music school, nursery, optician, patisserie, pet shop, "
    "photo studio, photography studio, pizzeria, plumbing company, print shop, "
    "property management company, pub, record shop, recording studio, roastery, "
    "roofing company, salon, sandwich shop, software company, solar company, spa, steakhouse, "
    "sushi bar, tattoo studio, tea room, tearoom, translation agency, tutoring center, "
    "vet clinic, veterinary practice, vineyard, web agency, web design agency, wedding venue, "
    "wine bar, wine shop, yoga studio"
)
# Also a part of a larger business, or words of other meanings.
_DOUBTFUL = {"library", "school", "hospital", "emergency clinic", "project", "cooperative"}
_PHRASES = (INDUSTRY_PHRASES | set(_MORE.split(", "))) - _DOUBTFUL
# Sorted, so that the pattern is the same in every process.
PHRASE = "|".join(sorted(map(re.escape, _PHRASES), key=lambda phrase: (-len(phrase), phrase)))
