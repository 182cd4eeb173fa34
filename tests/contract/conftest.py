"""How many examples the suites of protocols try: as many as the tests against models."""

from tests.model import conftest  # noqa: F401 - it loads the profile
