"""Layers and models for PyTorch Geometric: pooling by optimal transport distances to learnable templates.

>>> pool = TFGWPooling(in_channels=7, num_templates=8, template_nodes=17)
>>> optimizer = torch.optim.Adam(pool.parameters(), lr=0.01)
>>> project_after_step(optimizer, pool)
>>> pool(data.x, data.edge_index, data.batch)              # (batch_size, 8)
"""

from tfgw.nn.encoders import Encoder, GINEncoder
from tfgw.nn.ensemble import Ensemble
from tfgw.nn.graph_distance import GraphDistance, NodeDescription
from tfgw.nn.kernel_model import KernelConfig, KernelModel
from tfgw.nn.models import GINModel, TFGWConfig, TFGWModel
from tfgw.nn.projections import project_simplex
from tfgw.nn.template_layer import TemplateLayer, project_after_step
from tfgw.nn.templates import sample_templates
from tfgw.nn.tfgw_pooling import TFGWPooling
from tfgw.nn.tw_pooling import TWPooling

__all__ = [
    "Encoder",
    "Ensemble",
    "GINEncoder",
    "GINModel",
    "GraphDistance",
    "KernelConfig",
    "KernelModel",
    "NodeDescription",
    "TFGWConfig",
    "TFGWModel",
    "TFGWPooling",
    "TWPooling",
    "TemplateLayer",
    "project_after_step",
    "project_simplex",
    "sample_templates",
]
