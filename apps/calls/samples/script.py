"""An invented phone call: who says what, and how long the others wait before."""

from dataclasses import dataclass
from typing import Literal

AGENT, CUSTOMER = 1, 2


@dataclass(frozen=True)
class Line:
    """`pause` is the time in seconds after the end of the line before. If it is negative, both
    speakers can be heard at once."""

    speaker: Literal[1, 2]
    text: str
    pause: float = 0.5


CALL = [
    Line(AGENT, "Thank you for calling Green Valley Home Service. How can I help you today?", 0.6),
    Line(CUSTOMER, "Hello. My boiler stopped working last night, and the house is very cold."),
    Line(AGENT, "I am sorry to hear that. Is there a red light on the front of the boiler?", 0.7),
    Line(CUSTOMER, "Yes, the red light is on. What does that mean?", 0.8),
    Line(AGENT, "It means that the water pump is broken. We can repair it tomorrow morning.", 0.9),
    Line(CUSTOMER, "That would be great. How much does the repair cost?", -0.6),
    Line(AGENT, "The repair costs ninety five dollars, and the visit is free.", 0.6),
    Line(CUSTOMER, "That is a good price. Can you come before ten o'clock?"),
    Line(AGENT, "Yes. I will send you a message with the exact time this evening.", 0.7),
    Line(CUSTOMER, "Perfect. I will leave the garage door open for the engineer."),
    Line(AGENT, "Thank you. I will also email the invoice to you on Friday. Goodbye."),
    Line(CUSTOMER, "Thank you very much for your help. Goodbye.", 0.4),
]
