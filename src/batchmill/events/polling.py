"""Finds out which followed feeds have something new."""

from collections.abc import Callable, Collection

from batchmill.domain.feed import FeedPosition
from batchmill.events.channel import FeedChannel
from batchmill.store.feeds import FeedStore, Seen


class FeedPoll:
    """One query for all followed feeds, so a feed that gets no events costs nothing else.

    Each query finds the batches that the last one did not see. A feed that joins later reads all
    batches up to then by itself, so it needs only the next query.
    """

    def __init__(self, feeds: FeedStore):
        self._feeds = feeds
        self._seen: Seen | None = None

    async def look_at(self, followed: Callable[[], Collection[FeedChannel]]) -> None:
        """Wakes the channels of the feeds that may have changed."""
        asked = set(followed())
        # If this call fails, the next one wakes all channels.
        since, self._seen = self._seen, None
        if not asked:
            return
        logs = [channel.log for channel in asked]
        news = await self._feeds.news(
            [
                FeedPosition(channel.log.feed_id, channel.last_number)
                for channel in asked
                if channel.log.feed_id
            ],
            [log.feed for log in logs if not log.feed_id],
            {log.tenant for log in logs},
            since,
        )
        self._seen = news.seen
        for channel in followed():
            # The first read of a channel that was opened meanwhile may be older than the query.
            is_covered = news.is_exact and channel in asked
            log = channel.log
            if not is_covered or log.feed_id in news.changed or log.feed in news.joined:
                channel.look_again()
