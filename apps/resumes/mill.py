"""The mill of this application, and its settings. Modules that declare tasks import them here."""

from apps.resumes.settings import ResumesSettings
from apps.resumes.tables import RESUMES
from batchmill import Mill

settings = ResumesSettings.read()
mill = Mill(schemas=[RESUMES])
