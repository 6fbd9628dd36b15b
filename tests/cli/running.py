"""The program in this process."""

from click.testing import CliRunner

from cgnlearn.cli.main import main


def run(*words):
    """What the program did with these words; what it raises beyond an exit is an error of ours."""
    found = CliRunner().invoke(main, [str(word) for word in words], prog_name="cgnlearn")
    assert found.exception is None or isinstance(found.exception, SystemExit), repr(found.exception)
    return found


def outcome(*words):
    """Exit code, stdout, stderr."""
    found = run(*words)
    return found.exit_code, found.stdout, found.stderr


def works(*words):
    """What it prints."""
    code, out, err = outcome(*words)
    assert code == 0, err
    return out


def fails(code, *words):
    """The one line of an error."""
    found, out, err = outcome(*words)
    assert (found, out) == (code, "")
    assert err.startswith("cgnlearn: error: ")
    assert err.count("\n") == 1
    return err
