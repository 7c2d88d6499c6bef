"""States, provinces and countries, and words that names of towns have in common."""

STATES = """
    Alabama AL, Alaska AK, Arizona AZ, Arkansas AR, California CA, Colorado CO, Connecticut CT,
    Delaware DE, Florida FL, Georgia GA, Hawaii HI, Idaho ID, Illinois IL, Indiana IN, Iowa IA,
    Kansas KS, Kentucky KY, Louisiana LA, Maine ME, Maryland MD, Massachusetts MA, Michigan MI,
    Minnesota MN, Mississippi MS, Missouri MO, Montana MT, Nebraska NE, Nevada NV, New Hampshire NH,
    New Jersey NJ, New Mexico NM, New York NY, North Carolina NC, North Dakota ND, Ohio OH,
    Oklahoma OK, Oregon OR, Pennsylvania PA, Rhode Island RI, South Carolina SC, South Dakota SD,
    Tennessee TN, Texas TX, Utah UT, Vermont VT, Virginia VA, Washington WA, West Virginia WV,
    Wisconsin WI, Wyoming WY, Puerto Rico PR, Alberta AB, British Columbia BC, Manitoba MB, New
    Brunswick NB, Nova Scotia NS, Ontario ON, Quebec QC, Saskatchewan SK, New South Wales NSW,
    Queensland QLD, South Australia SA, Tasmania TAS, Victoria VIC, Western Australia WA
"""
COUNTRIES = """
    Afghanistan, Albania, Algeria, Andorra, Angola, Argentina, Armenia, Australia, Austria,
    Azerbaijan, Bahamas, Bahrain, Bangladesh, Barbados, Belarus, Belgium, Belize, Benin, Bhutan,
    Bolivia, Bosnia and Herzegovina, Botswana, Brazil, Brunei, Bulgaria, Burundi, Cambodia,
    Cameroon, Canada, Chad, Chile, China, Colombia, Costa Rica, Croatia, Cuba, Cyprus, Czechia,
    Czech Republic, Denmark, Djibouti, Dominica, Dominican Republic, Ecuador, Egypt, El Salvador,
    England, Eritrea, Estonia, Eswatini, Ethiopia, Fiji, Finland, France, Gabon, Gambia, Georgia,
    Germany, Deutschland, Ghana, Greece, Grenada, Guatemala, Guinea, Guyana, Haiti, Honduras,
    Hungary, Iceland, India, Indonesia, Iran, Iraq, Ireland, Israel, Italy, Italia, Jamaica, Japan,
    Jordan, Kazakhstan, Kenya, Kosovo, Kuwait, Kyrgyzstan, Laos, Latvia, Lebanon, Lesotho, Liberia,
    Libya, Liechtenstein, Lithuania, Luxembourg, Madagascar, Malawi, Malaysia, Maldives, Mali,
    Malta, Mauritania, Mauritius, Mexico, Moldova, Monaco, Mongolia, Montenegro, Morocco,
    Mozambique, Myanmar, Namibia, Nepal, Netherlands, The Netherlands, New Zealand, Nicaragua,
    Niger, Nigeria, North Macedonia, Northern Ireland, Norway, Oman, Pakistan, Panama, Papua New
    Guinea, Paraguay, Peru, Philippines, Poland, Portugal, Qatar, Romania, Russia, Rwanda, Samoa,
    San Marino, Saudi Arabia, Scotland, Senegal, Serbia, Seychelles, Sierra Leone, Singapore,
    Slovakia, Slovenia, Somalia, South Africa, South Korea, South Sudan, Spain, Sri Lanka, Sudan,
    Suriname, Sweden, Switzerland, Syria, Taiwan, Tajikistan, Tanzania, Thailand, Togo, Tonga,
    Trinidad and Tobago, Tunisia, Turkey, Turkmenistan, UAE, Uganda, UK, Ukraine, United Arab
    Emirates, United Kingdom, United States, USA, Uruguay, Uzbekistan, Vanuatu, Venezuela, Vietnam,
    Wales, Yemen, Zambia, Zimbabwe, AT, AU, BE, BR, CA, CH, CZ, DE, DK, ES, FI, FR, GB, IE, IN, IT,
    JP, MX, NL, NO, NZ, PL, PT, SE, US
"""
TOWN_WORDS = """
    Bad Bay Beach Bridge Canyon Cape City Coast Cove Creek East El Falls Fort Forest Gardens Glen
    Grand Grove Harbor Harbour Heights Hill Hills Island Junction Key La Lake Lakes Las Le Little
    Los Mount Mountain New North Oak Palm Park Point Port Puerto Rapids Ridge Rio Rock Saint Salt
    San Sankt Santa Santo Sioux South Spring Springs St Station Town Upper Valley Vista Village West
    Woods
"""


def _regions() -> frozenset[str]:
    found = {" ".join(entry.split()) for entry in COUNTRIES.split(",")}
    for entry in STATES.split(","):
        *name, code = entry.split()
        found |= {" ".join(name), code}
    return frozenset(found)


REGIONS = _regions()
TOWNS = frozenset(TOWN_WORDS.split())
