"""The program: where it is found, and which versions are accepted."""

import pytest

import spdy_lab


def test_a_missing_program_is_an_error_that_names_where_it_was_expected(monkeypatch):
    with pytest.raises(spdy_lab.ProgramNotFoundError, match=r"'/no/spdy' \(from the argument spdy\)"):
        spdy_lab.race(spdy="/no/spdy")
    monkeypatch.setenv("SPDY", "/no/other")
    with pytest.raises(spdy_lab.ProgramNotFoundError, match=r"'/no/other' \(from the variable SPDY\)"):
        spdy_lab.race()
    monkeypatch.delenv("SPDY")
    monkeypatch.setenv("PATH", "/no")
    with pytest.raises(spdy_lab.ProgramNotFoundError, match=r"'spdy' \(from PATH\): put spdy into PATH"):
        spdy_lab.race()


@pytest.mark.parametrize("version", ["spdy 0.10.0", "spdy 1.0.0", "nghttp 0.1.0", ""])
def test_another_version_or_program_is_an_error_with_what_it_printed(script, version):
    path = script(f"echo '{version}'")
    with pytest.raises(spdy_lab.VersionError, match=f"expected spdy 0.1, found '{version or 'no output'}'"):
        spdy_lab.read("a.db", spdy=path)


def test_a_patch_release_is_accepted(script):
    path = script('[ "$1" = --version ] && echo spdy 0.1.9 && exit; echo no such store >&2; exit 1')
    with pytest.raises(spdy_lab.ProgramError, match="spdy lab export failed with exit code 1: no such store") as error:
        spdy_lab.read("a.db", spdy=path)
    assert (error.value.code, error.value.stderr) == (1, "no such store")
