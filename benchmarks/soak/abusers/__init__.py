"""Every abuser, by name."""

from benchmarks.soak.abuser import Abuser
from benchmarks.soak.abusers.batches import Canceller, LargeSubmitter, Lister
from benchmarks.soak.abusers.bodies import (
    FormSender,
    JobOptionSender,
    JsonSender,
    LongItemSender,
    OptionSender,
)
from benchmarks.soak.abusers.connections import (
    EndlessHeaderSender,
    IdleCaller,
    UnfinishedBodySender,
    UnfinishedFormSender,
    UnfinishedHeaderSender,
)
from benchmarks.soak.abusers.downloads import (
    PayloadReader,
    Pipeliner,
    UnreadArchive,
    UnreadFile,
    UnreadResults,
)
from benchmarks.soak.abusers.keys import ConcurrentKeyGuesser, KeyGuesser, SameKeySubmitter
from benchmarks.soak.abusers.names import NotifySubmitter, WebhookCreator
from benchmarks.soak.abusers.sheets import (
    CodeGuesser,
    HeavyPdfSender,
    MeetDiscoverer,
    SlowUrlSender,
)
from benchmarks.soak.abusers.small_batches import SmallBatchSubmitter
from benchmarks.soak.abusers.streams import UnreadStream
from benchmarks.soak.abusers.uploads import FormAborter, UploadAborter

KINDS: tuple[type[Abuser], ...] = (
    *(JsonSender, LongItemSender, OptionSender, JobOptionSender, FormSender),
    *(Canceller, Lister, LargeSubmitter),
    *(
        EndlessHeaderSender,
        UnfinishedHeaderSender,
        UnfinishedBodySender,
        UnfinishedFormSender,
        IdleCaller,
    ),
    *(NotifySubmitter, WebhookCreator, MeetDiscoverer),
    *(SlowUrlSender, HeavyPdfSender, CodeGuesser),
    *(SameKeySubmitter, KeyGuesser, ConcurrentKeyGuesser, SmallBatchSubmitter),
    *(UnreadResults, UnreadArchive, UnreadFile, UnreadStream, PayloadReader, Pipeliner),
    *(UploadAborter, FormAborter),
)
ABUSERS: dict[str, type[Abuser]] = {kind.name: kind for kind in KINDS}
