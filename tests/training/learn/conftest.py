import pytest


@pytest.fixture
def one_thread():
    """PyTorch adds up sums in one order."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
