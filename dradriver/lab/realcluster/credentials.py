"""Keys and certificates that a real cluster uses among its own parts.

One certificate, which is its own authority, is server and client of etcd and the API server's client certificate to
kubelets: whoever trusts it trusts its one key, and nobody else on the machine can talk to etcd or a kubelet.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dradriver.lab.identities import write_private

_LIFETIME = timedelta(days=365)
_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files: the parts' common certificate and its key, and the key that signs service account tokens."""

    certificate: Path
    key: Path
    signing_key: Path


def make_credentials(directory: Path, now: datetime) -> Credentials:
    """Make all of them in a private directory that exists, valid for a year from `now` (aware)."""
    made = Credentials(directory / "parts.crt", directory / "parts.key", directory / "service-accounts.key")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpupool lab parts")])
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_private(made.certificate, certificate.public_bytes(serialization.Encoding.PEM))
    write_private(made.key, _pem(key))
    write_private(made.signing_key, _pem(ec.generate_private_key(ec.SECP256R1())))
    return made


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
