"""Name patterns of the API, each in one place (apimachinery `validation`, resource.k8s.io validation)."""

from __future__ import annotations


def is_dns_label(text: str) -> bool:
    """Whether a text is a DNS label of at most 63 characters: devices, requests, counter sets."""
    raise NotImplementedError


def is_dns_subdomain(text: str, *, limit: int = 253) -> bool:
    """Whether a text is a DNS subdomain: object names, driver names (limit 63), attribute domains (limit 63)."""
    raise NotImplementedError


def is_c_identifier(text: str) -> bool:
    """Whether a text is a C identifier of at most 32 characters: the id part of an attribute or capacity name."""
    raise NotImplementedError


def is_pool_name(text: str) -> bool:
    """Whether a text is DNS subdomains joined with `/`, at most 253 characters."""
    raise NotImplementedError


def is_qualified_name(text: str) -> bool:
    """Whether a text is `id` or `domain/id` as attribute and capacity names are."""
    raise NotImplementedError
