"""TLS as a kubeconfig asks for it.

Certificates given as data never stay on disk: the `kubernetes` package would leave them in temporary files until the
process ends well, which a killed one does not.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dradriver.cluster.errors import UnreachableError


def tls_context(
    cluster: Mapping[str, Any], user: Mapping[str, Any], where: str, *, verify: bool = True
) -> ssl.SSLContext:
    """A context that trusts the cluster's authority (without one, the system's) and shows the user's certificate.

    Args:
        cluster: a kubeconfig's cluster; `certificate-authority`(`-data`) is read.
        user: a kubeconfig's user; `client-certificate`(`-data`) and `client-key`(`-data`) are read.
        where: what to name in errors.
        verify: False accepts any certificate.

    Raises:
        UnreachableError: a file or its content is no certificate or key.

    """
    authority = _pem(cluster, "certificate-authority", where) if verify else None
    try:
        context = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
    except (ssl.SSLError, ValueError) as error:
        raise UnreachableError(f"{where}: certificate-authority holds no certificates in PEM: {error}") from error
    # Python 3.13 adds this flag; cluster authorities made by older tools lack the extensions it demands, and Go,
    # so kubectl, does not ask for them (kubernetes-client/python#2394).
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate, key = _pem(user, "client-certificate", where), _pem(user, "client-key", where)
    if certificate:
        _load_identity(context, certificate, key or b"", where)
    return context


def _pem(entry: Mapping[str, Any], key: str, where: str) -> bytes | None:
    """Content of `<key>-data` (base64) or of the file `<key>`; data wins, as in client-go."""
    data, file = entry.get(f"{key}-data"), entry.get(key)
    try:
        if data:
            return base64.b64decode("".join(data.split()), validate=True)
        return Path(file).read_bytes() if file else None
    except (AttributeError, TypeError, ValueError) as error:
        raise UnreachableError(f"{where}: {key}-data is not base64: {error}") from error
    except OSError as error:
        raise UnreachableError(f"{where}: {key} {file} cannot be read: {error.strerror}") from error


def _load_identity(context: ssl.SSLContext, certificate: bytes, key: bytes, where: str) -> None:
    # Python takes a certificate chain from a file alone; the file lives, in a private folder, for this call. The empty
    # password keeps an encrypted key from asking on the terminal.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "identity.pem")
        file.write_bytes(certificate.rstrip() + b"\n" + key)
        try:
            context.load_cert_chain(file, password="")
        except (ssl.SSLError, ValueError) as error:
            raise UnreachableError(
                f"{where}: client-certificate and client-key are not an unencrypted pair in PEM: {error}"
            ) from error
