"""Explanations that add up: a class score, taken apart down to the nodes and edges of the graph.

>>> explanation = tfgw.explain(model, graph)              # a torch_geometric.explain.Explanation
>>> explanation.node_mask                                 # signed; sums to score - reference_score
>>> Explainer(model, TFGWExplainer(), ...)(x, edge_index) # the same for PyTorch Geometric's metrics

score ─ head_path ─▶ entries of the readout: templates, sums ─ plan_costs ─▶ structure, features ─▶ nodes, links

**From the score to templates.** The head is a perceptron with ReLUs on the readout z: the distances dₖ to the
templates, and where the model has them, sums over encoded nodes. A contribution is counted from a reference readout
z⁰ (:class:`Reference`), by default the mean over the training graphs. Entry e contributes

    cₑ = wₑ (zₑ − z⁰ₑ),    w = ∫₀¹ ∇score(z⁰ + t (z − z⁰)) dt,

its integrated gradient (Sundararajan, Taly, Yan: Axiomatic Attribution for Deep Networks, 2017,
https://arxiv.org/abs/1703.01365). It is the one path method that treats all entries alike, it gives 0 to an entry that
the score does not depend on, and Σₑ cₑ = score(z) − score(z⁰). Along the path the score is piecewise linear, so that
the integral is a finite sum over the pieces between the kinks of the ReLUs: it is computed exactly, without steps.

The score of a class is its output minus the mean output of the other classes, which of two classes is the log-odds;
softmax ignores what is common to all outputs. In regression and multi-label models it is the output itself.

**From a template to structure and features, nodes and links.** At the optimal plan T,

    dₖ = α Σᵢⱼ Pᵢⱼ + (1 − α) Σᵢ Fᵢ,    Pᵢⱼ = Σₐᵦ Tᵢₐ Tⱼᵦ (Cᵢⱼ − C̄ₐᵦ)²,    Fᵢ = Σₐ Tᵢₐ ‖fᵢ − f̄ₐ‖²,

so that the two parts of cₖ are wₖ (α ΣP − S⁰ₖ) and wₖ ((1 − α) ΣF − F⁰ₖ), where S⁰ₖ + F⁰ₖ = d⁰ₖ. Node i of weight hᵢ
takes that share of the reference: a pair has wₖ (α Pᵢⱼ − hᵢ hⱼ S⁰ₖ), half of which goes to each end, and a node
has wₖ ((1 − α) Fᵢ − hᵢ F⁰ₖ). A node that costs less than its share speaks for what the template stands for. Where the
head is given square roots, √d − √d⁰ = (d − d⁰) / (√d + √d⁰) makes the sums exact again.

**Symmetries.** Nodes that a symmetry of the graph exchanges share their contributions evenly (:mod:`node_orbits`): a
plan sends one of them here and another there, but its image under the symmetry is as good a plan. Together with
canonical node order, renumbering the nodes of a graph renumbers its explanation, and changes nothing else.

Features are those that the encoder gives: what is said of a node includes what its neighbours passed on to it.
"""

from tfgw.explanations.explainer_algorithm import MaskableModel, TFGWExplainer
from tfgw.explanations.explaining import explain
from tfgw.explanations.reference import Reference

__all__ = ["MaskableModel", "Reference", "TFGWExplainer", "explain"]
