"""The lab's own certificate authority and the server certificate that kubectl and Python's `ssl` accept.

Keys are made anew for each lab and live in its private directory, readable by their owner alone.
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
_NO_USAGE = dict.fromkeys(
    (
        *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
        *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
    ),
    False,
)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Where the server's certificate and key are, and the authority's certificate (PEM) that clients trust."""

    certificate: Path
    key: Path
    ca: bytes


def make_certificates(directory: Path, now: datetime) -> Certificates:
    """Make an authority and a certificate for 127.0.0.1, ::1 and localhost, valid for a year from `now` (aware).

    Args:
        directory: A private directory that exists; gets `ca.crt`, `apiserver.crt` and `apiserver.key`.
        now: The time.
    """
    ca_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpupool lab authority")])
    ca_id = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    ca = (
        _builder(ca_name, ca_name, ca_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**_NO_USAGE | {"key_cert_sign": True, "crl_sign": True}), critical=True)
        .add_extension(ca_id, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpupool lab API server")])
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", "::1")]
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), *addresses])
    server = (
        _builder(server_name, ca_name, server_key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**_NO_USAGE | {"digital_signature": True}), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(names, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_id), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(server_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    made = Certificates(directory / "apiserver.crt", directory / "apiserver.key", ca.public_bytes(pem))
    write_private(made.certificate, server.public_bytes(pem))
    write_private(made.key, server_key.private_bytes(pem, private, serialization.NoEncryption()))
    write_private(directory / "ca.crt", made.ca)
    return made


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFETIME)
    )
