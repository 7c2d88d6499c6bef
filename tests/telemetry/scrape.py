"""A parsed scrape."""

from prometheus_client.parser import text_string_to_metric_families

from batchmill import Mill


class Scrape:
    def __init__(self, text: str):
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples.get((f"batchmill_{name}", frozenset(labels.items())))

    def by(self, name: str, label: str, **labels: str) -> dict[str, float]:
        """The values of the samples with these labels, by the value of another label."""
        wanted = labels.items()
        return {
            dict(pairs)[label]: value
            for (sample, pairs), value in self.samples.items()
            if sample == f"batchmill_{name}" and wanted <= set(pairs)
        }


async def scrape(mill: Mill) -> Scrape:
    return Scrape((await mill.metrics.render()).decode())
