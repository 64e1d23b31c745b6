"""The functions that Kubernetes gives to selectors, one module for each library."""

from __future__ import annotations

from dradriver.cel.declarations import Overload
from dradriver.cel.libraries import lists, optionals, quantities, regex, sets, standard, strings, versions

OVERLOADS: tuple[Overload, ...] = (
    *standard.OVERLOADS,
    *strings.OVERLOADS,
    *lists.OVERLOADS,
    *sets.OVERLOADS,
    *regex.OVERLOADS,
    *optionals.OVERLOADS,
    *quantities.OVERLOADS,
    *versions.OVERLOADS,
)

NOT_MODELLED = frozenset(
    {
        "duration", "timestamp", "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek",
        "getDayOfYear", "getHours", "getMinutes", "getSeconds", "getMilliseconds",
        "url", "isURL", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery",
        "ip", "isIP", "cidr", "isCIDR", "ip.isCanonical", "family", "isUnspecified", "isLoopback",
        "authorizer", "named", "validate", "format.named",
    },
)  # fmt: skip
"""Functions that Kubernetes has and this evaluator has not: times, URLs, IP addresses, formats. No device has them."""
