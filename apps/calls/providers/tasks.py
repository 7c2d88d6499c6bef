"""The tasks of the providers whose operations are jobs. Workers have to import this module.

The names do not begin with `calls.`, because limits on that pipeline are for the stages of calls.
"""

from apps.calls.mill import mill
from apps.calls.providers.enqueued import OperationOrder
from apps.calls.providers.local.package import model_directory
from apps.calls.providers.local.provider import TASK as LOCAL
from apps.calls.providers.openai import REQUEST_SECONDS, bought, joined_transcript
from apps.calls.providers.openai import TASK as OPENAI
from apps.calls.settings import LocalSettings, TranscriptionSettings
from batchmill import Artifact, Job, Limits, Retry, SyncJob

LOCAL_SECONDS = 7_200.0
LOCAL_BYTES = 2_048 * 1_048_576
OPENAI_SECONDS = 4 * REQUEST_SECONDS
TRANSCRIPT = "transcript.json"
JSON = "application/json"


@mill.task(
    name=LOCAL,
    process=True,
    # If the operation fails, the call fails too, so the attempts cover an outage of some minutes.
    retry=Retry(attempts=8, base=2, cap=600),
    limits=Limits(total=LocalSettings.read().operations),
    timeout=LOCAL_SECONDS,
    memory=LOCAL_BYTES,
)
def local_operation(job: SyncJob, order: OperationOrder) -> Artifact:
    """Runs in a child process, because it computes for minutes in native code."""
    settings = LocalSettings.read()
    model_directory(settings)
    # They import packages that only the check above guarantees.
    from apps.calls.providers.local.transcriber import transcribed
    from apps.calls.providers.local.whisper import loaded

    def report(percent: float) -> None:
        job.progress("transcribing", "Transcribing on this machine", percent)

    report(0)
    audio, folder = job.artifacts.path(order.audio), job.artifacts.folder()
    transcript = transcribed(audio, folder, loaded(settings), report).model_copy(
        update={"language": order.language, "duration": order.duration}
    )
    return job.artifacts.save(TRANSCRIPT, transcript.to_json(), media_type=JSON)


@mill.task(
    name=OPENAI,
    retry=Retry(attempts=8, base=10, cap=600, max_retry_after=3_600),
    limits=Limits(total=TranscriptionSettings.read().concurrency),
    timeout=OPENAI_SECONDS,
)
async def openai_operation(job: Job, order: OperationOrder) -> Artifact:
    settings = TranscriptionSettings.read()
    answers = [
        await bought(job, order, channel, settings) for channel in range(1, order.channels + 1)
    ]
    transcript = await joined_transcript(job, order, answers)
    for answer in answers:
        job.artifacts.release(answer)
    return await job.artifacts.save(TRANSCRIPT, transcript, media_type=JSON)
