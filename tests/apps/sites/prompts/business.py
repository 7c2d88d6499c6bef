"""Facts of businesses, for tests."""

from collections.abc import Sequence

from apps.sites.models import Fact, Facts

SITE = "https://www.business-casual.example/"


def fact(value: str) -> Fact:
    return Fact(value=value, page=SITE, words=value, method="text")


def facts(
    *,
    name: str | None = None,
    industry: str | None = None,
    location: str | None = None,
    description: str | None = None,
    keywords: Sequence[str] = (),
    hours: Sequence[str] = (),
) -> Facts:
    return Facts(
        business_name=fact(name) if name is not None else None,
        industry=fact(industry) if industry is not None else None,
        location=fact(location) if location is not None else None,
        description=fact(description) if description is not None else None,
        keywords=[fact(keyword) for keyword in keywords],
        opening_hours=[fact(each) for each in hours],
    )


CAFE = facts(
    name="Business Casual",
    industry="coffee shop",
    location="Portland, OR",
    description="Business Casual brews coffee.",
    keywords=["espresso", "Business Casual", "pastries", "tea"],
    hours=["Monday Closed", "Tuesday 7:00 AM to 8:00 PM", "Sunday 7:00 AM to 8:00 PM"],
)
