"""The five papers whose figures and tables can be drawn, as figures name them."""

from __future__ import annotations

CVPR = "Jiang et al. 2024"
PREPRINT = "Jiang et al., preprint"
VIT_CX = "ViT-CX"
TIS = "TIS"
EEA = "EEA"

CITATIONS = {
    CVPR: "Jiang, Khorram, Li: Comparing the Decision-Making Mechanisms by Transformers and CNNs via Explanation "
    "Methods, CVPR 2024",
    PREPRINT: "Examining the Difference Among Transformers and CNNs with Explanation Methods, its preprint",
    VIT_CX: "Xie, Li, Cao, Zhang: ViT-CX: Causal Explanation of Vision Transformers, IJCAI 2023",
    TIS: "Englebert et al.: Explaining through Transformer Input Sampling, ICCV workshops 2023, its supplement",
    EEA: "Explainer-Explained Architecture for Vision Models, its appendix",
}
