"""What somebody can do after a call, as patterns for sentences in the form of `english.Folded`.

After "I will", "let me", "please" and "could you", every verb counts that is not listed as talking,
waiting, feeling or having. After other words, only listed verbs count.
"""

_VERBS = (
    "send|resend|e-?mail|mail|text|call|phone|ring|contact|message|forward|fax|ship|deliver"
    "|post|drop|pick|bring|fetch|collect|return|exchange|swap|replace|repair|fix|tow|order"
    "|reorder|buy|purchase|book|schedule|reschedule|move|arrange|organize|set|cancel|check"
    "|double-check|find|search|review|test|inspect|examine|investigate|update|upgrade|change"
    "|switch|correct|adjust|add|remove|delete|write|print|scan|sign|fill|submit|upload"
    "|download|attach|share|provide|pay|deposit|wire|refund|reimburse|credit|deduct|invoice"
    "|transfer|connect|process|file|open|close|create|prepare|draft|prescribe|refill|visit"
    "|meet|join|attend|escalate|report|notify|inform|remind|authorize|approve|waive|extend"
    "|reserve|install|clean|wash|paint|measure|calculate|register|enroll|reset|restart|reboot"
    "|unplug|activate|unlock|lock|release|dispatch|assign|block|issue|resolve|discuss|consult"
    "|pull up|follow up|reach out|get back|get in touch|stop by|swing by|come by|show up"
    "|figure out|find out|sort out|work out|work on|deal with|hand over|type up|write down"
    "|note down|loop in"
)
_CALL = "call|contact|e-?mail|text|phone|ring"
_PHRASES = (
    r"confirm (?:it|this|by|in|the (?:appointment|booking|date|delivery|order|reservation|time))"
    r"|come (?:by|in|over|out|back|to|at|on|and|today|tomorrow)"
    r"|look (?:into|up|at|for|over|(?:it|that|this|them) up)"
    r"|get (?:you|it|that|this|them|him|her|someone|somebody|the|my|your|our)\b(?! wrong)"
    r"|take (?:care of|a look|(?:a|some|a few) (?:picture|photo)s?|(?:it|that|this) (?:to|in|off))"
    r"|make (?:sure|a note|a copy|arrangements|(?:an?|the|that|your) (?:appointment|reservation))"
    r"|put (?!\w+ on (?:\w+ ){0,2}hold)(?:it|that|this|you|your|the|an?|in|them|together"
    r"|everything|something|all)"
    rf"|have (?:someone|somebody|him|her|them|(?:my|our|the|an?) [a-z]+) (?:{_CALL}|come|check|look"
    r"|send|bring|fix|deliver|reach|get|take|follow|give|review)"
    r"|keep (?:you|me|us) (?:posted|updated|informed)"
    r"|give (?:you|him|her|them) an? (?:call|ring|refund|discount|quote|credit|copy)"
    r"|let (?:you|him|her|them|(?:my|our|the|mr|mrs|ms|dr) [a-z]+) know"
    r"|(?:talk|speak) (?:to|with) (?!you\b)"
    r"|ask (?:my|our|the|him|her|them|for|around)"
    r"|tell (?:him|her|them|my|our|the)|leave (?:it|that|this|them|an?|my|your|the)"
    r"|give (?:it|that|this|him|her|them) (?:to|the|an?|my|your)|pass (?:it|that|this|along|on)"
    r"|drive (?:it|over|by|down|there|to)|handle (?:it|that|this)|hold (?:it|that|the|your) for"
    r"|keep (?:it|that|the|your|an eye)|turn (?:it|that|the|on|off)|note (?:that|it|this)"
    r"|run (?:an?|the|it|that|some)|go (?:over|through)|track (?:it|that|down|the)"
    r"|do (?:that|this|it)"
)
ACT = rf"(?:{_VERBS}|{_PHRASES})\b"
_NEVER = (
    "be|have|has|say|see|think|guess|bet|admit|assume|know|understand|remember|forget|believe|hope"
    "|wish|feel|miss|lose|win|survive|live|die|stay|wait|hold|stick|stop|start|need|want|like|love"
    "|hate|mind|worry|appreciate|owe|cost|seem|sound|become|happen|appear|receive|hear|listen|enjoy"
    "|continue|agree|prefer|regret|spend|imagine|accept|excuse|forgive|pardon|bear|hang|repeat|spell"
    "|describe|explain|clarify|elaborate|verify|confirm|help|speak|talk|tell|ask|show|walk|read"
    "|guarantee|press|dial|interrupt|rephrase|finish|sleep|end|never|not|only|probably|possibly"
    "|hopefully|maybe|likely|i|you|he|she|it|we|they|this|that|the|a|an|and|or|but|so|if|in|on|at"
    "|for|to|with|from|of|as|by|there|here|too|again|sure|okay|yes|no|what|how|let|do|go|come|get"
    "|take|make|put|give|keep|leave|pass|turn|run|note|look|slow|try|use|thank|thanks|anyway|is|was"
    "|us|me"
)
# A verb with one of many meanings counts only in a listed phrase: "take a look", not "take it".
ANY_ACT = rf"(?:{ACT}|(?!(?:{_NEVER})\b)[a-z]{{2,}}(?:-[a-z]+)?\b(?!'))"
ACTING = (
    r"(?:sending|calling|e-?mailing|mailing|texting|contacting|shipping|delivering|bringing|coming"
    r"|picking|dropping|checking|processing|refunding|forwarding|following up|reaching out)\b"
)
# What a person who is not in the call will do.
CONTACT = (
    rf"(?:{_CALL}|reach out|get back|get in touch|come (?:by|out|over|to)|visit|deliver|bring|pick"
    r"|send|follow up|be (?:there|calling|coming|in touch))\b"
)
DONE = (
    r"(?:ready|done|finished|delivered|shipped|repaired|fixed|sent|completed|there|refunded"
    r"|credited|replaced)\b"
)
# Words between "I will" and what I will do. Possessive: none of them is the verb itself.
ADVERBS = (
    "(?:(?:just|also|then|definitely|personally|certainly|gladly|immediately|quickly|now|please"
    "|kindly|maybe|possibly|at least|actually|first|always|rather|go ahead and|be sure to"
    "|make sure to|be happy to|be able to|try to|try and|do (?:our|my) best to) )*+"
)
