"""How many nodes templates have by default."""

import warnings

import networkx as nx
import pytest

from tfgw.datasets import GraphDataset, from_networkx
from tfgw.estimators import TFGWTransformer
from tfgw.train.template_size import MAX_DEFAULT_NODES, default_template_nodes, number_of_templates


def cycles(*sizes: int) -> GraphDataset:
    return from_networkx([nx.cycle_graph(size) for size in sizes])


def test_the_median_up_to_a_limit() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert default_template_nodes(cycles(3, 64, 90)) == 64
        assert default_template_nodes(cycles(3, 5, 900)) == 5
    with pytest.warns(UserWarning, match="have a median of 65 nodes; templates have 64 nodes; set template_nodes"):
        assert default_template_nodes(cycles(3, 65, 90)) == MAX_DEFAULT_NODES == 64


def test_estimators_say_so_and_do_as_told() -> None:
    graphs = cycles(70, 71, 72)
    with pytest.warns(UserWarning, match="templates have 64"):
        assert TFGWTransformer(num_templates=2, random_state=0).fit(graphs).templates_.features.shape[1] == 64
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TFGWTransformer(num_templates=2, template_nodes=66, random_state=0).fit(graphs)


def test_ten_thousand_classes_are_probably_values() -> None:
    with pytest.raises(ValueError, match="10,000 classes would need 20,000 templates; set the number of templates"):
        number_of_templates({"templates_per_class": 2}, 10_000)
    assert number_of_templates({"num_templates": 5000}, 10_000) == 5000
    assert number_of_templates({"templates_per_class": 2}, 500) == 1000
