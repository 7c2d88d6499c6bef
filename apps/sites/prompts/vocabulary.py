"""Kinds of businesses. Prompts write these words plainly, and quote all others."""

from dataclasses import dataclass

from apps.sites.answers.folding import fold

# The location matters: customers go there, or the business comes to them.
LOCAL_KINDS = """
    accountancy firm, accountant, accounting firm, amusement park, animal shelter, aquarium,
    architect, architecture firm, architecture practice, art gallery, attorney, auto body shop,
    auto parts store, auto repair shop, bakery, bank, bar, barber shop, barbershop, beauty
    salon, bed and breakfast, bicycle shop, bike shop, bistro, bookshop, bookstore, boutique,
    bowling alley, brewery, brewpub, builders merchant, butcher, butcher shop, cafe, campground,
    car dealer, car dealership, car garage, car rental, car rental company, car repair shop, car
    wash, casino, caterer, catering company, child care center, childcare center, chiropractic
    clinic, chiropractor, cinema, cleaning company, cleaning service, climbing gym, clinic,
    clothing store, cocktail bar, coffee roastery, coffee shop, coffeehouse, comedy club,
    community health center, computer store, construction company, convenience store, coworking
    space, dance school, dance studio, day spa, daycare, deli, delicatessen, dental clinic,
    dental office, dental practice, dentist, department store, dermatology clinic, diagnostic
    lab, distillery, doctor, doctor's office, driving school, dry cleaner, electrician,
    electronics store, elementary school, emergency clinic, employment agency, escape room,
    estate agency, event venue, eye clinic, farm, farm shop, fast food restaurant, fish market,
    fitness center, fitness studio, florist, flower shop, food truck, funeral home, furniture
    store, garden center, garden centre, garden store, gas station, general contractor,
    geriatric clinic, gift shop, golf course, grocery store, guest house, guesthouse, gym,
    gynecology practice, hair salon, hair studio, hairdresser, hardware store, health club, high
    school, hobby shop, home builder, home goods store, hospital, hostel, hotel, house painter,
    hvac company, ice cream shop, inn, insurance agency, insurance broker, interior designer,
    internet cafe, jewelry store, juice bar, kennel, kindergarten, landscaper, landscaping
    company, language school, laundromat, law firm, law office, leisure centre, library, liquor
    store, locksmith, martial arts school, massage therapist, medical center, medical centre,
    medical clinic, men's clothing store, middle school, midwifery practice, mobile phone store,
    motel, motorcycle dealer, movie rental store, movie theater, moving company, museum, music
    school, music store, music venue, nail salon, night club, notary, nursery, nursing home,
    nursing service, nutrition counselor, obstetrics practice, office equipment store, oncology
    clinic, optician, optometrist, outlet store, painter, patisserie, pawn shop, pediatric
    practice, pet shop, pet store, pharmacy, photo studio, photographer, photography studio,
    physiotherapist, physiotherapy practice, pizzeria, plastic surgery clinic, plumber, plumbing
    company, podiatry practice, post office, preschool, primary care practice, print shop,
    property management company, psychiatric clinic, pub, public swimming pool, real estate
    agency, real estate agent, record shop, recording studio, recycling center, resort,
    restaurant, roastery, roofer, roofing company, roofing contractor, rv park, sandwich shop,
    school, self storage facility, shoe store, shopping center, ski resort, solar company, spa,
    sporting goods store, sports club, stadium, steakhouse, supermarket, sushi bar, swimming
    pool, tailor, tattoo parlor, tattoo studio, tea house, tea room, tea shop, tearoom, tennis
    complex, theater, tire shop, tour operator, tourist information center, toy store, tutoring
    center, university, vacation rental, vet clinic, veterinarian, veterinary clinic, veterinary
    practice, vineyard, wedding venue, wine bar, wine shop, winery, yoga studio, zoo
"""
# The location does not matter: customers buy from anywhere.
REMOTE_KINDS = """
    airline, app developer, cloud provider, consultancy, consulting firm, design agency, design
    studio, domain registrar, e-commerce business, game studio, hosting provider, insurance
    company, investment firm, manufacturer, marketing agency, mobile app, news media
    organization, news site, newspaper, online bank, online bookstore, online course provider,
    online magazine, online marketplace, online pharmacy, online school, online shop, online
    store, open source project, payment provider, publisher, radio station, record label,
    research organization, saas company, software company, software developer, software tool,
    streaming service, subscription box, telecommunications company, television station,
    translation agency, travel agency, web agency, web design agency, web hosting company,
    wholesale store, wholesaler
"""
# Names of schema.org types, as phrases, and other forms.
SAME_KIND = {
    "art dealer": "art gallery",
    "auto dealer": "car dealership",
    "auto rental": "car rental",
    "auto repair": "auto repair shop",
    "bar or pub": "bar",
    "book store": "bookstore",
    "cafe or coffee shop": "coffee shop",
    "child care": "childcare center",
    "coffee house": "coffeehouse",
    "dry cleaning or laundry": "dry cleaner",
    "exercise gym": "gym",
    "food establishment": "restaurant",
    "health and beauty business": "beauty salon",
    "legal service": "law firm",
    "lodging business": "hotel",
    "online business": "online shop",
    "physician": "doctor",
    "saas": "saas company",
    "software": "software company",
    "software application": "software tool",
    "theatre": "theater",
    "web application": "software tool",
    "web shop": "online shop",
    "webshop": "online shop",
}
# These say nothing about what a business does.
VAGUE = frozenset(
    {
        "agency",
        "business",
        "company",
        "corporation",
        "local business",
        "organisation",
        "organization",
    }
    | {"place", "professional service", "store", "shop", "thing", "website", "web site"}
)
# With one of these words, a business is not local, whatever it sells.
REMOTE_WORDS = frozenset(
    {"online", "software", "saas", "app", "apps", "platform", "digital", "web"}
)
ABBREVIATIONS = {"saas": "SaaS", "hvac": "HVAC", "rv": "RV"}
ES_ENDINGS = ("s", "sh", "ch", "x", "z")


@dataclass(frozen=True, slots=True)
class Kind:
    """`name` and `plural` are words of this module, or None if the industry is not known here."""

    name: str | None
    plural: str | None
    is_local: bool | None


def _entries(table: str) -> frozenset[str]:
    return frozenset(fold(" ".join(entry.split())) for entry in table.split(","))


LOCAL, REMOTE = _entries(LOCAL_KINDS), _entries(REMOTE_KINDS)
KIND_WORDS = frozenset(word for kind in LOCAL | REMOTE for word in kind.split())


def kind_of(industry: str) -> Kind | None:
    """None if the industry is vague. `is_local` is None if it cannot be decided."""
    phrase = " ".join(fold(industry).split())
    phrase = SAME_KIND.get(phrase, phrase)
    name = phrase if phrase in LOCAL | REMOTE else _singular(phrase)
    if name in VAGUE or not phrase:
        return None
    if name in LOCAL | REMOTE:
        return Kind(_written(name), _written(plural_of(name)), name in LOCAL)
    return Kind(None, None, _is_local(name))


def plural_of(name: str) -> str:
    if name.endswith("y") and name[-2] not in "aeiou":
        return name[:-1] + "ies"
    return name + ("es" if name.endswith(ES_ENDINGS) else "s")


def _written(name: str) -> str:
    return " ".join(ABBREVIATIONS.get(word, word) for word in name.split())


def _singular(phrase: str) -> str:
    """The kind whose plural the phrase is."""
    return PLURALS.get(phrase, phrase)


def _is_local(phrase: str) -> bool | None:
    """Decided by the words that come last: a `specialty coffee shop` is a coffee shop."""
    words = phrase.split()
    if REMOTE_WORDS & set(words):
        return False
    for start in range(1, len(words)):
        ending = _singular(" ".join(words[start:]))
        if ending in LOCAL | REMOTE:
            return ending in LOCAL
    return None


PLURALS = {plural_of(name): name for name in LOCAL | REMOTE | VAGUE}
