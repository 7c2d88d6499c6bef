"""Resolves the host of a URL, and refuses it unless every address is permitted."""

from asyncio import gather
from collections.abc import Sequence

import httpx

from batchmill.errors import AddressRefused, ResponseTooSlow, Unreachable
from batchmill.fetch.address import Addresses
from batchmill.fetch.budget import Budget
from batchmill.fetch.limits import FetchLimits
from batchmill.fetch.resolver import Resolve, look_up
from batchmill.fetch.url import host_of, parse, port_of


class Guard:
    def __init__(self, addresses: Addresses, limits: FetchLimits, resolve: Resolve | None):
        self._addresses = addresses
        self._limits = limits
        self._resolve = resolve

    async def permitted(self, url: httpx.URL, caller: str | None, budget: Budget) -> Sequence[str]:
        found = await self._found(host_of(url), port_of(url), caller, budget)
        self._judge(url, found)
        return found

    async def check(self, *urls: str, caller: str | None) -> None:
        targets = [parse(url) for url in urls]
        ports = {host_of(target): port_of(target) for target in targets}
        lookups = (
            self._found(host, port, caller, Budget(self._limits.total))
            for host, port in ports.items()
        )
        found = dict(zip(ports, await gather(*lookups, return_exceptions=True), strict=True))
        for target in targets:
            if not isinstance(answer := found[host_of(target)], BaseException):
                self._judge(target, answer)
        for answer in found.values():
            if isinstance(answer, BaseException):
                raise answer

    def _judge(self, url: httpx.URL, found: Sequence[str]) -> None:
        """One refused address refuses the name: a mixed answer may be an attempt to make the client
        connect to the wrong one."""
        if not all(self._addresses.permit(address, port_of(url)) for address in found):
            raise AddressRefused(
                f"{host_of(url)} points to an address or a port that is not allowed."
            )

    async def _found(
        self, host: str, port: int, caller: str | None, budget: Budget
    ) -> Sequence[str]:
        """All addresses of the name."""
        try:
            async with budget.spend(at_most=self._limits.lookup):
                found = await self._ask(host, port, caller)
        except TimeoutError as error:
            raise ResponseTooSlow(f"The DNS lookup of {host} takes too long.") from error
        except OSError as error:
            raise Unreachable(f"The host name {host} could not be resolved.") from error
        if not found:
            raise Unreachable(f"The host name {host} could not be resolved.")
        return found

    async def _ask(self, host: str, port: int, caller: str | None) -> Sequence[str]:
        if self._resolve is not None:
            return await self._resolve(host, port)
        return await look_up(host, caller)
