"""Storage that every node of a cluster reaches, at a URL that fsspec knows: file://, s3://, gs://, …

Credentials come from the environment of each node, where the library of the protocol finds them; a URL that contains
any is refused, because it would end up in logs and process lists. Road not taken: moving results into place by the
storage's own rename, which object stores do not have. Files in the storage have names that were never used before, so
that nobody reads a half-written file of another attempt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from wiregauge.files import whole

__all__ = ["Storage", "StorageError"]

_WITHOUT_FOLDERS: Final = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "memory"}
"""Protocols of object stores: a folder exists as soon as an object in it does."""


class StorageError(Exception):
    """The storage cannot be used; the text says why and what to do."""


class Storage:
    """Files by name below one URL."""

    def __init__(self, url: str) -> None:
        """Raises StorageError when no installed library supports such a URL."""
        parts = urlsplit(url)
        if parts.username is not None or parts.password is not None:
            raise StorageError(
                f"storage {parts.scheme}://…@{parts.hostname}: credentials do not belong into a URL; "
                "set them in the environment of every node and leave them out"
            )
        self.url = url.rstrip("/")
        try:
            from fsspec.core import url_to_fs

            # An own instance: a cached one might have an old listing.
            fs, root = url_to_fs(self.url, skip_instance_cache=True)
        except ImportError as error:
            raise StorageError(
                f"storage {url}: {_line(error)}; install the library of this protocol, "
                "pip install 'wiregauge[s3]' for S3, on every node"
            ) from error
        except ValueError as error:
            raise StorageError(f"storage {url}: {_line(error)}") from error
        except Exception as error:
            raise self._failed("cannot be opened", error) from error
        self._fs: Any = fs
        self._root = str(root).rstrip("/")
        protocol = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
        self._has_folders = protocol not in _WITHOUT_FOLDERS

    def put(self, local: Path, name: str) -> None:
        """Stores a file under a name that was never used before."""
        target = f"{self._root}/{name}"
        try:
            if self._has_folders:
                self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._fs.put_file(str(local), target)
        except Exception as error:
            raise self._failed(f"{name} cannot be written", error) from error

    def get(self, name: str, local: Path) -> None:
        """Fetches a file to this machine; `local` appears atomically."""
        try:
            local.parent.mkdir(parents=True, exist_ok=True)
            with whole(local) as beside:
                self._fs.get_file(f"{self._root}/{name}", str(beside))
        except Exception as error:
            raise self._failed(f"{name} cannot be read", error) from error

    def remove(self, name: str) -> None:
        """Removes a file, or a folder with all its content; missing ones are ignored."""
        try:
            self._fs.rm(f"{self._root}/{name}", recursive=True)
        except FileNotFoundError:
            pass
        except Exception as error:
            raise self._failed(f"{name} cannot be removed", error) from error

    def _failed(self, what: str, error: Exception) -> StorageError:
        return StorageError(
            f"storage {self.url}: {what}: {_line(error)}; "
            "is the URL right, and do credentials in the environment allow it?"
        )


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
