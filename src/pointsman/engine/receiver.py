"""Where messages may go: what is wrong with the URL of a receiver, and which addresses are public.

The host of a URL is only a name: whoever sends resolves it, judges every address, and connects to one that was judged.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from pointsman.kernel.hook import Kind
from pointsman.kernel.ingest import Faults

LONGEST_URL = 2_000
Address = IPv4Address | IPv6Address

_PLAIN = re.compile(r"[!-~]+")
_LINK = re.compile(r"""[^\x00- "#<>?|\x7f-\U0010ffff]+""")
_FILE = re.compile(r"file:///(?!.*%00)[^?#]+")
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.|$))+|[0-9A-Fa-f:.]+")
_NAME = re.compile(r"call:[A-Za-z_][A-Za-z0-9_.-]{0,63}")


def of_url(kind: Kind, url: str, path: str, *, private: bool) -> Faults:
    """What is wrong with where a hook of a kind sends to."""
    if len(url) > LONGEST_URL or not _PLAIN.fullmatch(url):
        return [(path, f"must be 1 to {LONGEST_URL} visible ASCII characters, without spaces")]
    if kind == "call":
        return [] if _NAME.fullmatch(url) else [(path, "must be call:NAME, a function of the program that embeds Pointsman")]
    if kind == "cloudevents":
        return [] if url == "stdout:" or _FILE.fullmatch(url) else [(path, "must be stdout: or file:///ABSOLUTE/PATH")]
    return of_web(url, path, private=private)


def of_link(url: str, path: str) -> Faults:
    """What is wrong with the place where people open tasks: paths are put behind it, and a message shows it as a link."""
    if len(url) > LONGEST_URL or not _LINK.fullmatch(url):
        return [(path, f'must be 1 to {LONGEST_URL} visible ASCII characters, without spaces and <>|"?#')]
    return of_web(url, path, private=True)


def of_web(url: str, path: str, *, private: bool) -> Faults:
    """A place on the web: over TLS and at a public address, unless `private` addresses are allowed."""
    found = _split(url)
    if found is None or not found.hostname or not _HOST.fullmatch(found.hostname) or found.port == 0:
        return [(path, "must be a URL such as https://example.org/hook")]
    if found.username is not None or found.password is not None or found.fragment:
        return [(path, "must hold no user, password or fragment")]
    if found.scheme != "https" and not (private and found.scheme == "http"):
        return [(path, "must be an https URL; http goes only with private addresses allowed")]
    literal = _literal(found.hostname)
    if not private and (found.hostname.lower() == "localhost" or (literal is not None and not is_public(literal))):
        return [(path, "names an address that is not public; allow private addresses to use it")]
    return []


def is_public(address: Address) -> bool:
    """Whether an address is of the public internet. One address in the clothes of another is judged as what it stands for."""
    inner = _inner(address)
    return inner.is_global and not inner.is_multicast and not inner.is_reserved and not inner.is_unspecified


def _inner(address: Address) -> Address:
    if isinstance(address, IPv4Address):
        return address
    if int(address) >> 32 == _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour or address


_NAT64 = int(IPv6Address("64:ff9b::")) >> 32


def _split(url: str) -> SplitResult | None:
    try:
        found = urlsplit(url)
        _ = found.port
    except ValueError:
        return None
    return found


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
