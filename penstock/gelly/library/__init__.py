"""The library of algorithms. More are in its modules: linkanalysis, similarity, clustering, metric."""

from penstock.gelly.library.clustering.enumerating import TriangleEnumerator
from penstock.gelly.library.communities import CommunityDetection
from penstock.gelly.library.cores import KCore
from penstock.gelly.library.propagation import (
    ConnectedComponents,
    GSAConnectedComponents,
    GSASingleSourceShortestPaths,
    LabelPropagation,
    SingleSourceShortestPaths,
)
from penstock.gelly.library.summarization import Summarization

__all__ = [
    "CommunityDetection",
    "ConnectedComponents",
    "GSAConnectedComponents",
    "GSASingleSourceShortestPaths",
    "KCore",
    "LabelPropagation",
    "SingleSourceShortestPaths",
    "Summarization",
    "TriangleEnumerator",
]
