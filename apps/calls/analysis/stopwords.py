"""English words that are in every call and say nothing about its subject."""

from apps.calls.analysis.english import listed

STOPWORDS = listed(
    """
    a a.m able about above absolutely across actually add added after afternoon again against
    ago ah ahead ain't all almost along already alright also although always am among an and
    another any anybody anymore anyone anything anything's anytime anyway apart are aren't
    around as aside ask asked asking at away back bad basically be became because become been
    before behind being believe below beside besides best better between beyond big bit both
    bring brought but by bye call called calling calls came can can't cannot care case certain
    certainly check check's checked checking come comes coming completely cool could couldn't
    couple course day days definitely did didn't different do does doesn't doing don't done down
    dr drive driving drove during each earlier early easy eight either eleven else end ended
    ends enough especially etc even evening ever every everybody everyone everything everywhere
    exactly except far feel felt few fifteen fifty figure fill filled find fine first five for
    forget forgot forty forward found four friday from full further gave get gets getting give
    given gives giving go goes going gone gonna good got gotta gotten great guess guy guys had
    hadn't half handle handled handles happen happened happening happens hard hardly has hasn't
    have haven't having he he'd he'll he's hear heard hello help her here here's hers herself
    hey hi high him himself his hm hmm hold honestly hope hour hours how how's however huh
    hundred i i'd i'll i'm i've if in indeed inside instead into is isn't it it'd it'll it's its
    itself just keep keeps kept kind kinda knew know known knows last late later least leave
    left less let let's lets like likely literally little long look looked looking looks lot
    lots low ma'am made make makes making many may maybe me mean means meant mention mentioned
    might mine minute minutes miss mm mm-hmm moment monday month months more morning most mostly
    move moved moving mr mrs ms much must my myself name near nearly necessary need needed needs
    neither never new next nice night nine no nobody none nope nor not nothing now o'clock
    obviously of off oh ok okay old on once one ones only onto or other others otherwise ought
    our ours ourselves out outside over own p.m perfect perfectly perhaps please plus pm
    possible possibly prefer preferred pretty probably put puts quick quickly quite rather ready
    real really remember replaced rest right run said same saturday saw say saying says second
    see seeing seem seemed seems seen send sent set seven several shall she she'd she'll she's
    should shouldn't show since sir six sixty small so some somebody somehow someone something
    sometimes somewhere soon sorry sort sound sounds speak speaking start started starting
    starts stay staying still stop stopped stuff such sunday supposed sure take taken takes
    taking talk talked talking tell telling tells ten than thank thanks that that'd that'll
    that's the their theirs them themselves then there there'd there'll there's therefore these
    they they'd they'll they're they've thing things think thinking thinks third thirty this
    those though thought thousand three through thursday till time times to today together told
    tomorrow tonight too took totally toward towards tried try trying tuesday turn turned twelve
    twenty two type uh uh-huh um under understand unless until up upon us use used using usually
    very via wait waiting walk wanna want wanted wanting wants was wasn't way ways we we'd we'll
    we're we've wednesday week weeks welcome well went were weren't what what's whatever when
    when's whenever where where's wherever whether which while who who's whoever whole whom
    whose why will wish with within without won't wonderful wondering work worked working works
    would wouldn't wow yeah year years yep yes yesterday yet you you'd you'll you're you've your
    yours yourself yup
    """
)
