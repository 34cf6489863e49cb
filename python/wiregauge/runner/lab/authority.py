"""The lab's folder: its certificate authority for hosts and for the members who control them.

    lab.toml             the inventory: hosts, their addresses, and their interfaces for tests
    authority.pem        certificate of the authority, which every host of the lab has
    keys/authority.pem   its private key: its holder can make any certificate of the lab
    keys/NAME.pem        private key and certificate of a member, with the role the certificate names

`keys` has mode 700 and its files 600. Their content never goes into a run directory or a log.
"""

from __future__ import annotations

import datetime
import getpass
import os
import re
import stat
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from wiregauge.files import SMALL, new_folder, read_regular
from wiregauge.runner.lab.errors import LabError
from wiregauge.runner.lab.inventory import inventory_file

__all__ = ["ROLES", "Lab", "Member", "server_name"]

ROLES: Final = ("observer", "operator", "administrator")
"""The roles: observers read hosts; operators also run tests; administrators also end agents."""
_AUTHORITY_DAYS: Final = 3650
_MEMBER_DAYS: Final = 730
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_TIME_BEFORE: Final = datetime.timedelta(days=1)
"""How long before its creation a certificate is valid, since clocks of hosts may be behind."""


def server_name(host: str) -> str:
    """The name of a lab host in its certificate, so that no other host can impersonate it."""
    return f"{host.lower()}.host.wiregauge"


class Member(Struct, frozen=True):
    """A member who controls hosts: private key and certificate, PEM, and the certificate of the authority."""

    name: str
    role: str
    key: bytes
    certificate: bytes
    authority: bytes

    def sign(self, text: bytes) -> bytes:
        """An ECDSA P-256 signature with SHA-256, DER."""
        key = serialization.load_pem_private_key(self.key, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key.sign(text, ec.ECDSA(hashes.SHA256()))


class Lab:
    """A lab's folder. Raises LabError where there is none, or others can read its keys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / "authority.pem").is_file():
            raise LabError(f"{folder} is no lab; `wiregauge lab init {folder}` makes one")

    @property
    def inventory(self) -> Path:
        """The path of the inventory of hosts."""
        return inventory_file(self.folder)

    @classmethod
    def create(cls, folder: Path) -> Lab:
        """Creates a lab with an authority and a first member, the present user as administrator.

        Raises LabError where the folder is not empty.
        """
        if folder.exists() and any(folder.iterdir()):
            raise LabError(f"{folder} exists and is not empty; name another folder")
        with new_folder(folder):
            return cls._made(folder)

    @classmethod
    def _made(cls, folder: Path) -> Lab:
        keys = folder / "keys"
        keys.mkdir(mode=0o700)
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Wiregauge lab")])
        certificate = (
            _builder(name, name, key.public_key(), _AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        _store(keys / "authority.pem", _pem(key))
        (folder / "authority.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        lab = cls(folder)
        lab.inventory.write_text("# Hosts of this lab; `wiregauge lab enrol` adds them.\n", encoding="utf-8")
        lab.add_member(_user(), "administrator")
        return lab

    def authority(self) -> bytes:
        """The certificate of the authority, PEM."""
        return read_regular(self.folder / "authority.pem", SMALL)

    def add_member(self, name: str, role: str) -> Path:
        """Creates key and certificate of a member; returns the file to hand over."""
        if role not in ROLES:
            raise LabError(f'there is no role "{role}"; there are {", ".join(ROLES)}')
        if _NAME.fullmatch(name) is None or name == "authority":
            raise LabError(f'"{name}" is no name for a member: use letters, digits, ".", "_" and "-"')
        file = self.folder / "keys" / f"{name}.pem"
        if file.exists():
            raise LabError(f"{file} exists; choose another name, or remove it first")
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.COMMON_NAME, name),
                x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, role),
            ]
        )
        certificate = self._signed(subject, key.public_key(), ExtendedKeyUsageOID.CLIENT_AUTH, None)
        _store(file, _pem(key) + certificate)
        return file

    def fingerprint(self, name: str) -> bytes:
        """SHA-256 of a member's certificate. Raises LabError where the lab has no such member."""
        file = self.folder / "keys" / f"{name}.pem"
        try:
            certificate = x509.load_pem_x509_certificate(read_regular(file, SMALL))
        except (OSError, ValueError) as error:
            raise LabError(f"{file}: there is no certificate of {name} to revoke ({error})") from error
        return certificate.fingerprint(hashes.SHA256())

    def certify_host(self, name: str, request: str) -> bytes:
        """The certificate of a host for its request (PKCS #10, PEM). Raises LabError for an invalid request."""
        try:
            asked = x509.load_pem_x509_csr(request.encode())
            genuine = asked.is_signature_valid
        except (ValueError, InvalidSignature):
            genuine = False
        if not genuine:
            raise LabError(
                f"the request of {name} for a certificate is not in order; install the same version there"
            )
        key = asked.public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise LabError(f"{name} has a key of another kind than P-256; install the same version there")
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return self._signed(subject, key, ExtendedKeyUsageOID.SERVER_AUTH, server_name(name))

    def member(self, name: str | None = None) -> Member:
        """A member: the one of that name, of `WIREGAUGE_MEMBER`, or the present user.

        Raises LabError where there is no such key, or others may read it.
        """
        chosen = name or os.environ.get("WIREGAUGE_MEMBER") or _user()
        file = self.folder / "keys" / f"{chosen}.pem"
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
            text = read_regular(file, SMALL)
        except OSError as error:
            there = sorted(
                one.stem for one in (self.folder / "keys").glob("*.pem") if one.stem != "authority"
            )
            known = f"; there are {', '.join(there)}" if there else ""
            raise LabError(
                f"{file}: {error.strerror}{known}; name a member in WIREGAUGE_MEMBER, or have the lab's "
                f"administrator make one with `wiregauge lab member {chosen}`"
            ) from error
        if mode & 0o077:
            raise LabError(f"{file} has mode {mode:03o}: others could read the key; `chmod 600 {file}`")
        begins = text.find(b"-----BEGIN CERTIFICATE-----")
        try:
            certificate = x509.load_pem_x509_certificate(text[begins:])
        except ValueError as error:
            raise LabError(f"{file} holds no certificate; have it made again") from error
        ends = certificate.not_valid_after_utc
        if ends < datetime.datetime.now(datetime.UTC):
            raise LabError(f"the certificate in {file} was good until {ends:%Y-%m-%d}; have it made again")
        units = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATIONAL_UNIT_NAME)
        role = str(units[0].value) if units else ""
        return Member(chosen, role, text[:begins], text[begins:], self.authority())

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        purpose: x509.ObjectIdentifier,
        host: str | None,
    ) -> bytes:
        file = self.folder / "keys" / "authority.pem"
        try:
            signer = serialization.load_pem_private_key(read_regular(file, SMALL), None)
        except (OSError, ValueError) as error:
            raise LabError(
                f"{file}: the authority's private key is needed to make a certificate, and cannot be read; "
                "ask whoever keeps it"
            ) from error
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        issuer = x509.load_pem_x509_certificate(self.authority()).subject
        builder = (
            _builder(subject, issuer, key, _MEMBER_DAYS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        )
        if host is not None:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _TIME_BEFORE)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _store(file: Path, text: bytes) -> None:
    """Creates a file that nobody else can read at any moment."""
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(opened, "wb") as out:
            out.write(text)
    except BaseException:
        # A partial key would be taken as complete.
        file.unlink(missing_ok=True)
        raise


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "operator"
