"""Name patterns of the API, each in one place (apimachinery `util/validation`, resource.k8s.io `validation.go`)."""

from __future__ import annotations

import re
from typing import Final

LABEL_LIMIT: Final = 63
SUBDOMAIN_LIMIT: Final = 253
DRIVER_LIMIT: Final = 63
IDENTIFIER_LIMIT: Final = 32

_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_C_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")


def is_dns_label(text: str) -> bool:
    """Whether a text is a DNS label of at most 63 characters: devices, requests, counter sets."""
    return len(text) <= LABEL_LIMIT and _LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str, *, limit: int = SUBDOMAIN_LIMIT) -> bool:
    """Whether a text is a DNS subdomain: object names, driver names (limit 63), attribute domains (limit 63)."""
    return len(text) <= limit and _SUBDOMAIN.fullmatch(text) is not None


def is_driver_name(text: str) -> bool:
    """Whether a server takes a text as a driver name: a DNS subdomain of at most 63 characters in any case."""
    return is_dns_subdomain(text.lower(), limit=DRIVER_LIMIT)


def is_c_identifier(text: str) -> bool:
    """Whether a text is a C identifier of at most 32 characters: the id part of an attribute or capacity name."""
    return len(text) <= IDENTIFIER_LIMIT and _C_IDENTIFIER.fullmatch(text) is not None


def is_pool_name(text: str) -> bool:
    """Whether a text is DNS subdomains joined with `/`, at most 253 characters."""
    return len(text) <= SUBDOMAIN_LIMIT and all(is_dns_subdomain(part) for part in text.split("/"))


def is_qualified_name(text: str) -> bool:
    """Whether a text is `id` or `domain/id` as attribute and capacity names are."""
    domain, slash, identifier = text.rpartition("/")
    return is_c_identifier(identifier) and (not slash or is_driver_name(domain))


def is_label_key(text: str) -> bool:
    """Whether a text is `name` or `domain/name` as label keys, taint keys and condition types are."""
    domain, slash, name = text.rpartition("/")
    return _is_label_name(name) and (not slash or is_dns_subdomain(domain))


def is_label_value(text: str) -> bool:
    """Whether a text is a label's value: empty, or at most 63 letters, digits, `-`, `_`, `.`, ending in the former."""
    return not text or _is_label_name(text)


def _is_label_name(text: str) -> bool:
    return len(text) <= LABEL_LIMIT and _LABEL_NAME.fullmatch(text) is not None
