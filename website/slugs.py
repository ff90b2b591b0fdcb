"""Anchors of headings, as GitHub makes them, so that the links of the documents hold in the site."""

from __future__ import annotations

import re


def slug(heading: str, separator: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)
