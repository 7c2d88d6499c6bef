"""The documents of invented persons."""

import json
from typing import Any

import pytest

from apps.resumes.document import Resume, read
from apps.resumes.samples import DIRECTORY, SAMPLES, sample, samples


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_read_completely(name: str):
    document = sample(name)
    document.pop("$schema", None)
    assert read(document).as_json() == document


def test_the_list_names_every_file():
    assert {file.stem for file in DIRECTORY.glob("*.json")} == set(SAMPLES) == samples().keys()


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_points_to_a_real_place(name: str):
    resume = read(sample(name))
    for url in urls(resume.as_json()):
        assert ".example" in url
    assert resume.basics.email
    assert resume.basics.email.endswith(".example")


def urls(value: Any) -> list[str]:
    found = json.dumps(value, ensure_ascii=False).split('"')
    return [text for text in found if text.startswith("http")]


def test_the_samples_cover_all_sections_and_scripts():
    resumes = [read(document) for document in samples().values()]
    for section in Resume.model_fields:
        assert any(getattr(resume, section) for resume in resumes), section
    text = json.dumps(list(samples().values()), ensure_ascii=False)
    for letter in "قבΞЗ語한中":
        assert letter in text, letter
    assert sum(len(skill.keywords) for skill in read(sample("five-pages")).skills) == 40
