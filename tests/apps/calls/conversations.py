"""Three invented calls, with what a careful reader finds in each sentence.

Signs before a sentence: `?` a question, `P` a promise, `R` a request, `+` and `-` its sentiment.
"""

from typing import NamedTuple

from apps.calls.models import Segment, Transcript

REPAIR_SHOP = """
1 +  | Good morning, Harbor Street Garage, thanks for calling.
1 ?  | This is Dana, how can I help you?
2    | Hi Dana, my name is Luis Ortega.
2 -  | My brakes have been making a terrible grinding noise since Monday.
1 -  | Oh, I'm sorry to hear that.
1 ?  | What kind of car do you drive?
2    | It's a 2016 Honda Civic with about ninety thousand miles on it.
1 ?  | Does the noise happen every time you brake, or only when the brakes are cold?
2    | Every time, and the pedal goes almost to the floor.
1 -  | That sounds dangerous, so you should not drive it any further than you have to.
1 ?  | When were the brake pads last replaced?
2    | I think Mr. Allen replaced them two years ago for $189.50.
1 P  | Okay, let me check the schedule.
1    | We have an opening on Thursday at 8 a.m. or Friday at noon.
2 +  | Thursday at eight would be perfect.
1 P  | All right, I'll put you down for Thursday at 8 a.m.
1 R  | Please bring the registration and your key.
2 ?  | Will it be ready the same day?
1 P  | Yes, the car will be ready by 5 p.m. on Thursday.
2 ?  | And how much do new brake pads cost?
1    | Brake pads with labor are usually around 240 dollars.
1 P  | I'll email you a written estimate this afternoon.
2 ?R | Could you send it to my work address instead?
1 P+ | Sure, no problem, I'll send the estimate there.
2 +  | You have been really helpful, thank you so much.
1 +  | You're welcome, and have a great day.
"""

DELIVERY_COMPLAINT = """
1 +  | Thank you for calling Northwind Furniture, you're speaking with Priya.
2 -  | Yes, hello, I am extremely frustrated with your company.
1 -  | I'm very sorry about that.
1 ?  | Can you tell me what happened?
2 -  | I ordered an oak table three weeks ago and it never arrived.
2 -  | Then on Tuesday a driver dropped off the wrong table, and one leg is broken.
1 -  | That is unacceptable, and I apologize.
1 ?  | What's your order number?
2    | It's 4 4 7 1 9 0.
1 P  | One moment, I will look into the order.
1    | I see the oak table is still in our warehouse in Dayton.
2 ?- | So why does your website tell me it was delivered, when that is a lie and a waste of my time?
1 -  | The driver scanned the wrong label, which was our mistake.
2 -  | This is the worst service I have ever had.
2    | They said someone will call me, and nobody did.
1    | I understand.
1 P  | We'll deliver the oak table by Friday, and the driver will pick up the broken one.
2 ?  | Do I have to be at home all day?
1    | No, you don't need to wait all day.
1 P  | Someone from our warehouse will call you an hour before the delivery.
1 R  | Please don't sign the delivery note before you have looked at the table.
1 P  | I'm also going to refund the delivery fee within three business days.
2 +  | Okay, I appreciate that.
2 R  | I need you to send me that in writing.
1 P  | Of course, I'll send you an email today.
2 ?  | You have my email address, don't you?
1    | Yes, it is in the order.
1 +  | Thank you for your patience.
2    | Goodbye.
"""

APPOINTMENT = """
1    | Lakeside Dental, this is Tom speaking.
2    | Hello, this is Mrs. Fischer, I have an appointment next Tuesday at three.
2 ?  | Is it possible to move it to another day?
1 ?  | Sure, which day would you prefer?
2    | Wednesday or Thursday would work, but not before ten.
1 P  | Let me look at the calendar.
1    | Dr. Weber has a free slot on Wednesday at 10:30 and one on Thursday at 2 p.m.
2    | I'll take the one on Wednesday.
1 P  | Okay, I'll move your appointment to Wednesday at 10:30.
2 ?  | Do I need a new referral from my doctor
1    | No, the old referral is still valid until June.
1 R  | You need to fill out the patient form again, because it has changed.
2 ?  | Where can I find the form?
1    | It is on our website, and it takes about five minutes.
1 R  | Please send it back by Monday.
2 P  | I will fill it out tonight.
2 -  | I'm a little nervous, because the last treatment was painful.
1 +  | I understand, but Dr. Weber is excellent and very gentle.
1 P  | We will make sure you are comfortable.
2 +  | That's wonderful, I'm so relieved.
2 ?  | Should I eat before the treatment?
1 +  | A light breakfast is a good idea.
1 R  | If anything changes, let us know at least a day before.
2 P  | I'll do that.
2 +  | Thanks for your help, Tom.
1 +  | My pleasure, see you on Wednesday.
"""


class Line(NamedTuple):
    speaker: int
    signs: str
    text: str


def lines_of(conversation: str) -> list[Line]:
    found = []
    for line in filter(None, conversation.splitlines()):
        head, text = line.split("|")
        speaker, *signs = head.split()
        found.append(Line(int(speaker), "".join(signs), text.strip()))
    return found


def transcript_of(conversation: str) -> Transcript:
    """A line takes three seconds, and there is one second between lines."""
    segments = [
        Segment(speaker=line.speaker, start=at * 4.0, end=at * 4.0 + 3.0, text=line.text)
        for at, line in enumerate(lines_of(conversation))
    ]
    return Transcript(
        provider="local",
        language="en",
        duration=len(segments) * 4.0,
        speakers=2,
        segments=segments,
    )
