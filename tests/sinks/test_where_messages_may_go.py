"""What is wrong with a receiver's URL is said when it is added."""

from ipaddress import ip_address
from typing import Any

import pytest

from pointsman.engine.receiver import is_public, of_link, of_url

GOOD = [
    ("webhook", "https://example.org/hook", False),
    ("webhook", "https://example.org:8443/hook?x=1", False),
    ("webhook", "https://1.1.1.1/", False),
    ("webhook", "https://[2606:4700::1111]/", False),
    ("webhook", "http://localhost:9000/", True),
    ("slack", "https://hooks.example.org/services/T/B/x", False),
    ("ntfy", "http://[::1]:9000/topic", True),
    ("cloudevents", "stdout:", False),
    ("cloudevents", "file:///var/log/events.jsonl", False),
    ("call", "call:mine", False),
]
BAD = [
    ("webhook", "", False),
    ("webhook", "http://example.org/hook", False),
    ("webhook", "file:///etc/passwd", True),
    ("webhook", "gopher://example.org/", True),
    ("webhook", "https://", True),
    ("webhook", "https:///hook", True),
    ("webhook", "https://user:word@example.org/", True),
    ("webhook", "https://user@example.org/", True),
    ("webhook", "https://example.org/#part", True),
    ("webhook", "https://example.org/\r\nX-Evil: 1", True),
    ("webhook", "https://example.org/a b", True),
    ("webhook", "https://exämple.org/", True),
    ("webhook", "https://example.org:99999/", True),
    ("webhook", "https://example.org:x/", True),
    ("webhook", "https://[::1/", True),
    ("webhook", "https://exa_mple%0a.org/", True),
    ("webhook", "https://localhost/", False),
    ("webhook", "https://127.0.0.1/", False),
    ("webhook", "https://10.1.2.3/", False),
    ("webhook", "https://192.168.0.1/", False),
    ("webhook", "https://169.254.169.254/latest", False),
    ("webhook", "https://[::1]/", False),
    ("webhook", "https://[fd00::1]/", False),
    ("webhook", "https://[::ffff:10.0.0.1]/", False),
    ("webhook", "https://example.org/" + "x" * 2_000, True),
    ("slack", "stdout:", True),
    ("cloudevents", "file://host/path", False),
    ("cloudevents", "file:relative", False),
    ("cloudevents", "https://example.org/", False),
    ("cloudevents", "file:///tmp/a%00b", False),
    ("webhook", "https://example.org:0/", True),
    ("webhook", "https://a..example.org/", True),
    ("webhook", "https://-a.example.org/", True),
    ("webhook", f"https://{'a' * 64}.example.org/", True),
    ("call", "call:", False),
    ("call", "mine", False),
]


@pytest.mark.parametrize(("kind", "url", "private"), GOOD)
def test_a_url_that_fits(kind: Any, url: str, private: bool) -> None:
    assert of_url(kind, url, "url", private=private) == []


@pytest.mark.parametrize(("kind", "url", "private"), BAD)
def test_a_url_that_does_not(kind: Any, url: str, private: bool) -> None:
    ((path, message),) = of_url(kind, url, "url", private=private)
    assert path == "url"
    assert len(url) < 10 or url not in message, "what was sent is not repeated"


@pytest.mark.parametrize("link", ["http://127.0.0.1:8470", "https://board.example.org/tasks/"])
def test_a_link_that_fits(link: str) -> None:
    assert of_link(link, "link") == []


@pytest.mark.parametrize(
    "link", ["", "http://a.org/|evil>", "http://a.org/<b>", "http://a.org/?x", "http://a.org/ b", 'http://a.org/"', "javascript:alert(1)"]
)
def test_a_link_that_a_message_could_not_show(link: str) -> None:
    ((path, _),) = of_link(link, "link")
    assert path == "link"


PUBLIC = ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1"]
NOT_PUBLIC = [
    *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255"),
    *("::1", "::", "fe80::1", "fd00::1", "ff02::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_public_internet(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not(address: str) -> None:
    assert not is_public(ip_address(address))
