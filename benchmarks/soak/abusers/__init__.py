"""Every abuser, by name."""

from benchmarks.soak.abuser import Abuser
from benchmarks.soak.abusers.batches import Canceller, Lister
from benchmarks.soak.abusers.bodies import JsonSender
from benchmarks.soak.abusers.connections import Dribbler, FormStaller, Idler, Staller, Talker
from benchmarks.soak.abusers.downloads import ArchiveHolder, FileHolder, ResultHolder
from benchmarks.soak.abusers.keys import Guesser, Repeater
from benchmarks.soak.abusers.names import NotifyNamer, WebhookNamer
from benchmarks.soak.abusers.neighbours import Crowder
from benchmarks.soak.abusers.sheets import CodeGuesser, Discoverer, HeavySender, SlowLinker
from benchmarks.soak.abusers.streams import StreamHolder
from benchmarks.soak.abusers.uploads import FormCutter, UploadCutter

KINDS: tuple[type[Abuser], ...] = (
    *(JsonSender, Canceller, Lister),
    *(Talker, Dribbler, Staller, FormStaller, Idler),
    *(NotifyNamer, WebhookNamer, Discoverer),
    *(SlowLinker, HeavySender, CodeGuesser),
    *(Repeater, Guesser, Crowder),
    *(ResultHolder, ArchiveHolder, FileHolder, StreamHolder),
    *(UploadCutter, FormCutter),
)
ABUSERS: dict[str, type[Abuser]] = {kind.name: kind for kind in KINDS}
