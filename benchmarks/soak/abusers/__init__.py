"""Every abuser, by name."""

from benchmarks.soak.abuser import Abuser
from benchmarks.soak.abusers.batches import Canceller, LargeSubmitter, Lister
from benchmarks.soak.abusers.bodies import (
    FormSender,
    JsonSender,
    LongItemSender,
    NameSender,
    OptionSender,
)
from benchmarks.soak.abusers.connections import Dribbler, FormStaller, Idler, Staller, Talker
from benchmarks.soak.abusers.downloads import (
    ArchiveHolder,
    FileHolder,
    PayloadReader,
    Pipeliner,
    ResultHolder,
)
from benchmarks.soak.abusers.keys import Guesser, GuessingCrowd, Repeater
from benchmarks.soak.abusers.names import NotifyNamer, WebhookNamer
from benchmarks.soak.abusers.neighbours import Crowder
from benchmarks.soak.abusers.sheets import CodeGuesser, Discoverer, HeavySender, SlowLinker
from benchmarks.soak.abusers.streams import StreamHolder
from benchmarks.soak.abusers.uploads import FormCutter, UploadCutter

KINDS: tuple[type[Abuser], ...] = (
    *(JsonSender, LongItemSender, OptionSender, NameSender, FormSender),
    *(Canceller, Lister, LargeSubmitter),
    *(Talker, Dribbler, Staller, FormStaller, Idler),
    *(NotifyNamer, WebhookNamer, Discoverer),
    *(SlowLinker, HeavySender, CodeGuesser),
    *(Repeater, Guesser, GuessingCrowd, Crowder),
    *(ResultHolder, ArchiveHolder, FileHolder, StreamHolder, PayloadReader, Pipeliner),
    *(UploadCutter, FormCutter),
)
ABUSERS: dict[str, type[Abuser]] = {kind.name: kind for kind in KINDS}
