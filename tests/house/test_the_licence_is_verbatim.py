"""LICENSE is the Apache License 2.0 to the byte."""

import hashlib

from house.source import ROOT

APACHE_2_0 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


def test_the_text_is_the_standard_one() -> None:
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2_0
