"""The questions that models are asked about a business."""

from apps.sites.prompts.editing import GivenPrompt, edited_prompts
from apps.sites.prompts.forming import MOST, prompts_of

__all__ = ["MOST", "GivenPrompt", "edited_prompts", "prompts_of"]
