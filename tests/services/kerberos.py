"""A KDC of MIT Kerberos on loopback, with a realm, principals and keytabs of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.services.service import NotInstalled, Service

REALM = "PENSTOCK.TEST"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
CLIENT = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_realm = false
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  ticket_lifetime = {seconds}s
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""
SERVER = """\
[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
    max_life = 1d
    supported_enctypes = aes256-cts:normal aes128-cts:normal
  }}
"""


class Kdc(Service):
    """A key distribution centre. Its tickets end after some seconds, so that tests see them renewed."""

    name = "kdc"

    def __init__(self, ticket_seconds: int = 3600) -> None:
        super().__init__()
        self.ticket_seconds = ticket_seconds

    def install(self) -> None:
        missing = [program for program in PROGRAMS if _find(program) is None]
        if missing:
            raise NotInstalled(
                f"{', '.join(missing)} of MIT Kerberos not found; "
                "Debian: apt install krb5-kdc krb5-admin-server krb5-user"
            )

    def launch(self) -> subprocess.Popen[bytes]:
        words = {"realm": REALM, "port": self.port, "folder": self.folder, "seconds": self.ticket_seconds}
        self.configuration.write_text(CLIENT.format(**words))
        (self.folder / "kdc.conf").write_text(SERVER.format(**words))
        if not (self.folder / "principal").exists():
            self._run("kdb5_util", "create", "-s", "-P", "secret", "-r", REALM)
        return self.spawn([self._path("krb5kdc"), "-n", "-r", REALM, "-P", f"{self.folder}/pid"], **self.environment)

    def answers(self) -> bool:
        keytab = self.keytab("probe")
        cache = f"FILE:{self.folder / 'probe.cache'}"
        self._run("kinit", "-k", "-t", str(keytab), "-c", cache, f"probe@{REALM}")
        return True

    @property
    def configuration(self) -> Path:
        """The krb5.conf of clients."""
        return self.folder / "krb5.conf"

    @property
    def environment(self) -> dict[str, str]:
        """With these variables the programs of MIT Kerberos use this realm, and tickets in its folder."""
        return {
            "KRB5_CONFIG": str(self.configuration),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder / 'tickets'}",
        }

    @property
    def environment_of_clients(self) -> dict[str, str]:
        """With these variables programs and JVMs use this realm, and have no tickets."""
        return {
            "KRB5_CONFIG": str(self.configuration),
            "KRB5CCNAME": f"FILE:{self.folder / 'none'}",
            "JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={self.configuration}",
        }

    def log_in(self, name: str) -> None:
        """Put a ticket into the folder, where processes with `environment` find it."""
        self._run("kinit", "-k", "-t", str(self.keytab(name)), f"{name}@{REALM}")

    def change_key(self, name: str) -> None:
        """Give a principal another key, so that earlier keytabs no longer serve."""
        self._run("kadmin.local", "-r", REALM, "cpw", "-randkey", f"{name}@{REALM}")

    def keytab(self, *names: str) -> Path:
        """Create principals with random keys, unless they exist, and return a keytab with all of them."""
        keytab = self.folder / f"{names[0].replace('/', '-')}.keytab"
        if not keytab.exists():
            for name in names:
                self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", f"{name}@{REALM}")
                self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(keytab), f"{name}@{REALM}")
        return keytab

    def _run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [self._path(program), *arguments],
            env={**os.environ, **self.environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
        return done.stdout

    @staticmethod
    def _path(program: str) -> str:
        path = _find(program)
        assert path is not None
        return path


def _find(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
