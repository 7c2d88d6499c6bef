"""Words at the head of list items that are not names of businesses."""

# Folded. Whole heads, such as "Opening hours:".
WORDS = """
    about accessibility address advantages advice ambiance ambience amenities answer atmosphere
    availability awards background benefits best bonus budget caveat caveats community
    comparison conclusion cons considerations contact convenience cost credentials cuisine decor
    delivery description details disadvantages disclaimer drawbacks drinks email environment
    examples experience expertise extras fact features food highlights history hours important
    info insurance integrations interior licensing limitations local location locations menu
    neighborhood nightlife note notes offerings open options overview parking payment payments
    perks phone popular price prices pricing products pros quality rating ratings recommendation
    recommendations reputation reservations reviews safety seating security selection service
    services setting shipping signature specialties specialty staff strengths style summary
    support takeout tip tips transparency type verdict vibe warranty weaknesses website where
    who why wifi
"""
PHRASES = """
    best choice, best for, best overall, best value, bottom line, cost of service, customer
    reviews, customer service, customer support, final thoughts, for families, for visitors,
    good to know, hidden gems, honorable mentions, hours of operation, ideal for, key features,
    known for, mid range, must try, online reviews, opening hours, other options, popular
    choices, price range, pro tip, pros and cons, target audience, vegan options, what to
    expect, what to look for, what to order, what to try, why go, why visit
"""
# First words of advice, such as "Check recent reviews".
FIRST_WORDS = """
    always ask avoid be book browse call check choose clarify compare confirm consider consult
    contact decide define determine do double explore find get give go identify if include
    inspect investigate join keep know learn leverage list look make meet narrow never obtain
    plan prepare prioritize read remember request research review search see seek select set
    start take talk test think understand use verify visit watch when where
"""
# Words that names have in lowercase.
SMALL_WORDS = """
    a am an and at by d da das de del della der des di do du e el en et for from in la le les of on
    or the to und van von y
"""

LABELS = frozenset(WORDS.split()) | {" ".join(phrase.split()) for phrase in PHRASES.split(",")}
ADVICE = frozenset(FIRST_WORDS.split())
SMALL = frozenset(SMALL_WORDS.split())
