"""Exact explanations: a class score as a sum of contributions of templates, nodes and edges.

>>> explanation = tfgw.explain(model, graph)              # a torch_geometric.explain.Explanation
>>> explanation.node_mask                                 # signed; sums to score - reference_score
>>> Explainer(model, TFGWExplainer(), ...)(x, edge_index) # the same for PyTorch Geometric's metrics

score ─ head_path ─▶ entries of the readout: templates, sums ─ plan_costs ─▶ structure, features ─▶ nodes, links

**From the score to templates.** The head is an MLP with ReLUs on the readout z: the distances dₖ to the templates and,
in some models, sums over encoded nodes. Contributions are relative to a reference readout z⁰ (:class:`Reference`), by
default the mean over the training graphs. Entry e contributes

    cₑ = wₑ (zₑ − z⁰ₑ),    w = ∫₀¹ ∇score(z⁰ + t (z − z⁰)) dt,

its integrated gradient (Sundararajan, Taly, Yan: Axiomatic Attribution for Deep Networks, 2017,
https://arxiv.org/abs/1703.01365). It is the only path method that is symmetric in all entries, it gives 0 to an entry
that the score does not depend on, and Σₑ cₑ = score(z) − score(z⁰). Along the path, the score is piecewise linear, so
the integral is a finite sum over the pieces between the kinks of the ReLUs. It is computed exactly, without numerical
integration.

The score of a class is its output minus the mean output of the other classes; for two classes, this is the log-odds.
(The softmax is invariant to a shift of all outputs.) In regression and multi-label models, the score is the output
itself.

**From a template to structure and features, nodes and edges.** At the optimal plan T,

    dₖ = α Σᵢⱼ Pᵢⱼ + (1 − α) Σᵢ Fᵢ,    Pᵢⱼ = Σₐᵦ Tᵢₐ Tⱼᵦ (Cᵢⱼ − C̄ₐᵦ)²,    Fᵢ = Σₐ Tᵢₐ ‖fᵢ − f̄ₐ‖²,

so the two parts of cₖ are wₖ (α ΣP − S⁰ₖ) and wₖ ((1 − α) ΣF − F⁰ₖ), where S⁰ₖ + F⁰ₖ = d⁰ₖ. Node i of weight hᵢ gets
the share hᵢ of the reference: a pair has wₖ (α Pᵢⱼ − hᵢ hⱼ S⁰ₖ), half of which goes to each end, and a node has wₖ ((1
− α) Fᵢ − hᵢ F⁰ₖ). A node that costs less than its share supports what the template stands for. If the head uses square
roots, √d − √d⁰ = (d − d⁰) / (√d + √d⁰) keeps the sums exact.

**Symmetries.** Nodes that an automorphism of the graph exchanges share their contributions evenly (:mod:`node_orbits`):
a plan may treat them differently, but its image under the automorphism is equally good. Together with canonical node
order, renumbering the nodes of a graph renumbers its explanation and changes nothing else.

Features are the outputs of the encoder, so the contribution of a node includes information from its neighbours.

**Kernel machines.** All training graphs are templates, each with D kinds of distances, and the score is

    Σ_mi a_mi exp(−e_mi)   with   e_mi = Σ_d γ_md d_di,

where a_mi includes the weight of the ridge regression m and the factor of all scores. It is a sum of functions of one
exponent e_mi each, which is linear in the distances. The integrated gradient of a distance is therefore

    c_di = w_di (d_di − d⁰_di)   with   w_di = Σ_m γ_md a_mi (exp(−e_mi) − exp(−e⁰_mi)) / (e_mi − e⁰_mi),

where d⁰_di is the mean distance of all training graphs to graph i, and e⁰_mi follows from d⁰_di. Each distance is
divided among structure, features, nodes and edges by the formulas above with the slope w_di, and contributions are
summed over the kinds of distances. Features of level L describe the neighbourhood of radius L of a node
(:mod:`tfgw.nn.refinement`): the feature cost of a node is the share of the levels 0 … L at which its neighbourhood
differs from that of its match, or for real-valued features the squared difference of averages over these
neighbourhoods. It is attributed to the node in the centre, although a neighbour may be the cause. Labels with cycles
are labels, too. In distances between degrees, the averages of log(1 + degree) over these neighbourhoods are the
features of nodes, and Fᵢ is the Euclidean distance without the square.
"""

from tfgw.explanations.explainer_algorithm import MaskableModel, TFGWExplainer
from tfgw.explanations.explaining import explain
from tfgw.explanations.reference import Reference

__all__ = ["MaskableModel", "Reference", "TFGWExplainer", "explain"]
