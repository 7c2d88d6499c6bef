"""Legal forms, which names of businesses have or leave out."""

# Folded, without punctuation: `S.A.` is `sa`.
FORMS = frozenset(
    {
        *("inc", "incorporated", "corp", "corporation", "llc", "llp", "lllp", "lp", "pllc", "pbc"),
        *("ltd", "limited", "plc", "cic", "pty", "pte", "pvt", "unlimited"),
        *("gmbh", "mbh", "ggmbh", "ag", "kg", "kgaa", "ohg", "ug", "ek", "ev", "eg", "gbr", "se"),
        *("sa", "sas", "sasu", "sarl", "eurl", "snc", "spa", "srl", "srls", "sl", "slu", "sca"),
        *(
            "bv",
            "nv",
            "vof",
            "bvba",
            "ab",
            "hb",
            "aps",
            "as",
            "asa",
            "oy",
            "oyj",
            "ry",
            "ehf",
            "hf",
        ),
        *("kk", "gk", "sdn", "bhd", "tbk", "kft", "zrt", "nyrt", "doo", "dd", "ood", "eood", "ad"),
        *("spzoo", "sro", "ltda", "eireli", "cv", "sab", "ooo", "oao", "zao", "pao", "ип"),
        *("ооо", "оао", "зао", "пао", "ао", "株式会社", "有限会社", "合同会社", "有限公司"),
        *("股份有限公司", "주식회사", "유한회사"),
    }
)
# These are also parts of names, so they are left out only after a name of two words.
WEAK_FORMS = frozenset({"co", "company", "compania", "compagnie", "group", "holding", "holdings"})
ARTICLES = frozenset({"the", "a", "an"})
# Forms of several words, as they are written with spaces or points.
PHRASES = (("sp", "z", "o", "o"), ("d", "o", "o"), ("s", "r", "o"), ("s", "a", "de", "c", "v"))
GLUED = ("株式会社", "有限会社", "合同会社", "股份有限公司", "有限公司", "주식회사", "유한회사")
# Forms that come before the name.
LEADING = frozenset({*GLUED, "ооо", "оао", "зао", "пао", "ао", "ип", "ooo", "oao", "zao", "pao"})
