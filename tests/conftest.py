"""What all tests share: no example of Hypothesis fails for being slow, as it may on a busy machine."""

from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
