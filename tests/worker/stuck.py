"""A task whose preparation never ends, for child processes."""

import time

from batchmill import Mill

mill = Mill("postgresql://nowhere")


def never_ends() -> None:
    while True:
        time.sleep(60)


@mill.task(process=True, prepare=never_ends)
def never_prepared() -> None:
    pass
