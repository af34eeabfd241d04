import torch
from torch import nn

from tfgw.nn import TFGWPooling
from tfgw.nn.threads import networks_on_one_thread


def test_the_solver_keeps_the_threads_that_the_networks_give_up() -> None:
    undecided, decided = TFGWPooling(2, 3, 4), TFGWPooling(2, 3, 4, num_threads=7)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with networks_on_one_thread(nn.ModuleList([undecided, decided])):
            assert torch.get_num_threads() == 1
            assert [undecided.num_threads, decided.num_threads] == [2, 7]
        assert torch.get_num_threads() == 2
        assert [undecided.num_threads, decided.num_threads] == [None, 7]
    finally:
        torch.set_num_threads(before)
