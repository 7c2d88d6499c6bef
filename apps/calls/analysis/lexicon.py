"""English words with sentiment, as callers and agents use them. Weights are from -3 to 3.

Words that are often used without sentiment are left out: like, well, kind, right, fine, free,
sure, help, support, clean, patient.
"""

from apps.calls.analysis.english import listed

_WORDS = {
    3.0: """
        amazing awesome brilliant delighted excellent exceptional fabulous fantastic incredible love
        loved loves magnificent marvellous marvelous outstanding perfect perfectly phenomenal superb
        terrific thrilled wonderful wonderfully
    """,
    2.0: """
        admire adore beautiful beautifully charming delightful ecstatic enjoy enjoyed enjoying
        enjoys excited exciting flawless flawlessly friendly fun generous glad gladly grateful great
        happier happiest happily happy helpful honored honoured ideal impressed impressive joy
        kindness lifesaver lovely lucky nice nicely nicest pleasant pleased pleasure proud recommend
        recommended refreshing reliable relieved satisfied satisfying smoothly spotless stellar
        stunning sweet trustworthy
    """,
    1.0: """
        accommodating affordable appreciate appreciated appreciates appreciative attentive best
        better calm capable cheerful comfortable comfortably confident congratulations considerate
        convenient conveniently courteous dependable easier easily easy effective efficient
        efficiently encouraged encouraging good gracious helped hope hopeful hopefully improved
        improvement improvements improving knowledgeable painless patience
        polite politely professional promising prompt promptly reassured reassuring relief
        respectful responsive safe safely smooth solved success successful successfully supportive
        thank thankful thanks thorough thoughtful understanding valuable welcome welcoming
    """,
    -1.0: """
        afraid aggressive anxious apologise apologised apologize apologized awkward bothered
        bothering broke broken burned burnt clogged complaint complaints concerned
        concerning confused confusing confusion crack cracked crash crashed crashes
        crashing damaged dead defect defective defects delay delayed delays denied
        dent dented difficult difficulties difficulty dirty disconnected disruption doubt
        doubtful error errors expensive fail failed failing fails failure failures fault faults
        faulty forgot forgotten glitch glitches hassle hurt hurts impossible inaccurate incomplete
        inconvenience inconvenienced inconvenient incorrect incorrectly inferior injured injury
        insufficient interrupted invalid issue issues lack lacking late leak leaked leaking leaks
        lose losing loss lost malfunction malfunctioning malfunctions misplaced mistake mistaken
        mistakes misunderstanding misunderstood nervous noisy obstacle outage overdue pain poor
        poorly problem problematic problems refused refuses refusing reject rejected reluctant
        rotten rust rusty sad sadly scratch scratched scratches shattered sick slow slowly
        smashed sorry spoiled stain stained stale strange struggle struggled struggling stuck suffer
        suffered suffering suspicious tired torn trouble troubles troubling unclear uncomfortable
        unfortunate unfortunately unpleasant unresolved unsure unusable unwell vague warped weak
        worn worried worries worry worrying wrong wrongly
    """,
    -2.0: """
        abandoned abusive aggravated aggravating alarmed angrily angry annoy annoyed annoying
        ashamed bad badly baffled betrayed careless cheated complain complained complaining
        complains crap dangerous deceived disappoint disappointed disappointing disappointment
        dishonest dislike disrespectful distressed embarrassed embarrassing exhausted exhausting
        filthy frightened frustrate frustrated frustrates frustrating frustration gross harassed
        harassing hopeless hostile ignored ignoring impatient inadequate infuriating lied lousy mad
        mess messed messy misleading misled miserable mistreated neglected negligent nonsense
        offended offensive overcharged overpriced painful regret ridiculous rude rudely ruin ruined
        ruins scared shocked shocking sloppy stolen stranded stressed stressful stupid terrified
        trash unfair unhappy unhelpful unprofessional unreliable unsafe unsatisfied upset upsetting
        waste wasted wasting worse worthless wrecked
    """,
    -3.0: """
        abysmal appalled appalling atrocious awful disaster disastrous disgrace disgraceful
        disgusted disgusting dreadful fraud furious garbage hate hated hates horrendous horrible
        horribly horrific incompetent insulted insulting liar livid nightmare outraged outrageous
        pathetic scam scammed shameful terrible terribly unacceptable unbearable useless worst
    """,
}
WEIGHTS = {word: weight for weight, words in _WORDS.items() for word in listed(words)}

# Phrases whose words alone mean something else. With the weight 0, they have no sentiment.
_PHRASES = {
    3.0: "could not be happier|couldn't be happier",
    2.0: "looking forward to|look forward to|can't wait|well done|good job|great job",
    1.0: """no problem|no problems|not a problem|no worries|not to worry|don't worry|do not worry
        |no trouble|no issue|no issues|not bad|working again|works again|works now|good news
        |can't complain|works for me|that works""",
    0.0: """good morning|good afternoon|good evening|good night|good bye|as good as|not only
        |not just|good question|never mind|best way|best time|best number|best email|best address
        |our best|my best|had better|you'd better|late fee|issue a|issue you|issue the|a good time
        |worst case|the better|no thanks|no thank you|not sure|for good""",
    -1.0: "too bad|bad news|too long|won't start|doesn't start",
    -2.0: """doesn't work|does not work|didn't work|did not work|don't work|do not work|not working
        |isn't working|aren't working|wasn't working|won't work|never worked|stopped working
        |no longer works|never arrived|not arrived|hasn't arrived|didn't arrive|did not arrive
        |never came|never showed|didn't show up|fed up|sick of|tired of|let me down|let us down
        |fell apart|falling apart|out of order|no good|no use|no help|waste of time|not fair
        |isn't fair|not acceptable|isn't acceptable""",
    -3.0: "rip off|ripped off|last straw|never again",
}
PHRASES = {
    tuple(phrase.split()): weight
    for weight, phrases in _PHRASES.items()
    for phrase in phrases.split("|")
}
LONGEST_PHRASE = max(map(len, PHRASES))

# They change the sign of a word that follows. So does every word that ends with "n't".
NEGATORS = listed(
    """not no never nothing nobody none neither nor without hardly barely cannot cant dont wont isnt
    didnt doesnt wasnt arent couldnt wouldnt havent hasnt"""
)
# "No" before these words is an answer: "no that's great".
STATEMENTS = listed(
    """i i'm i'll i've you you're he he's she she's it it's we we're they they're that that's this
    there there's and but"""
)
_STRONGER = """
    absolutely completely deeply entirely especially exceptionally extremely fully genuinely highly
    hugely incredibly particularly pretty quite really remarkably seriously so super totally truly
    utterly very
"""
_WEAKER = "bit fairly little mildly partly slightly somewhat"
INTENSIFIERS = dict.fromkeys(listed(_STRONGER), 1.5) | dict.fromkeys(listed(_WEAKER), 0.5)
