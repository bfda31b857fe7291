"""What the tests of the Python package expect of a call."""

import kiln


def fails(call, text, kind=kiln.Error):
    """Expects an error of this kind whose text has `text`."""
    try:
        call()
    except kind as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError(f"expected an error with: {text}")
