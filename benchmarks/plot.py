"""Bar charts as SVG, readable on dark and light pages."""

from html import escape

from benchmarks.measure import Series
from benchmarks.system import BATCHMILL, SYSTEMS

OTHERS = {system.name for system in SYSTEMS} - {BATCHMILL.name}
WIDTH, LABEL, ROW, TOP = 720, 220, 26, 44
STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; font-size: 15px; }
.bar { fill: #8c959f; } .ours { fill: #1f6feb; } .spread { stroke: #24292f; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .bar { fill: #6e7681; } .ours { fill: #58a6ff; }
  .spread { stroke: #e6edf3; }
}"""


def bars(series: Series) -> str:
    """A bar for each row, in the order of the series, with a line from minimum to maximum."""
    most = max((max(samples) for samples in series.samples.values()), default=1) or 1
    scale = (WIDTH - LABEL - 90) / most
    height = TOP + ROW * len(series.samples) + 8
    body = [f'<text class="title" x="8" y="24">{escape(series.title)} ({series.unit})</text>']
    for row, name in enumerate(series.rows):
        body += bar(series, name, TOP + ROW * row, scale)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img">\n<style>{STYLE}</style>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def bar(series: Series, name: str, y: int, scale: float) -> list[str]:
    value, samples = series.median(name), series.samples[name]
    length = max(1.0, value * scale)
    kind = "bar" if name.split(",")[0] in OTHERS else "bar ours"
    least, most = (LABEL + max(0.0, each) * scale for each in (min(samples), max(samples)))
    text = f"{value:,.{digits(value)}f}"
    return [
        f'<text x="{LABEL - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>',
        f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{length:.1f}" height="18" rx="2"/>',
        f'<line class="spread" x1="{least:.1f}" x2="{most:.1f}" y1="{y + 9}" y2="{y + 9}"/>',
        f'<text x="{max(LABEL + length, most) + 6:.1f}" y="{y + 14}">{text}</text>',
    ]


def digits(value: float) -> int:
    return 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
