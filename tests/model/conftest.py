"""How hard the model tests look: enough to find what is wrong, little enough to run on every change."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "model",
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("model")
