"""Methods that follow attention, once more: literally, for one image of a timm ViT, in float64, with whole matrices."""

import copy

import numpy as np
import torch


class Twin:
    """A float64 copy of a ViT that computes attention openly, and what one image does in it.

    Args:
        module: timm's ViT.
        x: One normalized image, [1, 3, H, W].
        target: The class explained.
        read: Tokens that the head reads; None: it pools over the patch tokens.
        output: "logit" or "score".
        hidden: Normalized baseline [1, 3, H, W]; None: zeros.
    """

    def __init__(self, module, x, target, read, output="logit", hidden=None):
        self.module = copy.deepcopy(module).double().eval()
        self.x, self.target, self.output = x.double(), target, output
        self.hidden = torch.zeros_like(self.x) if hidden is None else hidden.double()
        self.prefix = module.num_prefix_tokens
        self.attention, self.entering, self.values = [], [], []
        for block in self.module.blocks:
            block.attn.fused_attn = False
            block.attn.attn_drop.register_forward_hook(self._keep)
            block.register_forward_pre_hook(lambda m, args: self.entering.append(args[0][0].detach()))
            block.attn.qkv.register_forward_hook(
                lambda m, i, out: self.values.append(out[0, :, 2 * out.shape[-1] // 3 :].detach())
            )
        self.known_feedback = {}
        self.gradients = self.backward(self.x)
        self.A = [a.detach()[0] for a in self.attention]
        self.Z, self.V = list(self.entering), list(self.values)
        self.depth, self.tokens = len(self.A), self.A[0].shape[-1]
        self.read = range(self.prefix, self.tokens) if read is None else read

    def _keep(self, module, inputs, out):
        out.retain_grad()
        self.attention.append(out)

    def backward(self, x):
        self.attention.clear(), self.entering.clear(), self.values.clear()
        logits = self.module(x.requires_grad_())[0]
        said = logits if self.output == "logit" else logits.softmax(0)
        said[self.target].backward()
        return [a.grad[0] for a in self.attention]

    def picture(self, matrix):
        """Mean of the rows of the tokens that are read, at the patches."""
        rows = [matrix[token, self.prefix :] for token in self.read]
        side = int(len(rows[0]) ** 0.5)
        return (sum(rows) / len(rows)).view(side, side)

    def feedback(self, steps):
        if steps not in self.known_feedback:
            total = torch.zeros_like(self.A[-1])
            for alpha in np.linspace(0, 1, steps):
                total += self.backward(self.hidden + alpha * (self.x.detach() - self.hidden))[-1]
            self.known_feedback[steps] = (total / steps).clamp(min=0).mean(0)
        return self.known_feedback[steps]


def fuse(a, heads):
    return {"mean": a.mean(0), "max": a.max(0).values, "min": a.min(0).values}[heads]


def raw_attention(t, layer=-1, heads="mean"):
    return t.picture(fuse(t.A[layer], heads))


def rollout(t, variant="chefer", start_layer=0, heads="mean", discard=None):
    eye = torch.eye(t.tokens, dtype=torch.float64)
    if variant == "tam":
        results = []
        for head in range(len(t.A[0])):
            product = eye
            for a in t.A[start_layer:]:
                step = (dropped(a[head], discard) if discard else a[head]) + eye
                product = step / step.sum(1, keepdim=True) @ product
            results.append(product)
        return t.picture(fuse(torch.stack(results), heads))
    product = eye
    for a in t.A[start_layer:]:
        fused = fuse(a, heads)
        if variant == "chefer":
            step = (dropped(fused, discard) if discard else fused) + eye
            for i in range(t.tokens):
                step[i] = step[i] / step[i].sum()
        else:
            step = (dropped(fused, 0.9 if discard is None else discard) + eye) / 2
            sums = [step[j].sum() for j in range(t.tokens)]
            for j in range(t.tokens):
                step[:, j] = step[:, j] / sums[j]
        product = step @ product
    return t.picture(product)


def dropped(matrix, share):
    flat = matrix.flatten().clone()
    for place in flat.argsort()[: int(len(flat) * share)].tolist():
        if place != 0:
            flat[place] = 0
    return flat.view_as(matrix)


def cgw2(t, start_layer=0, clip="heads"):
    relevance = torch.eye(t.tokens, dtype=torch.float64)
    for a, g in zip(t.A[start_layer:], t.gradients[start_layer:], strict=True):
        mixed = (a * g).clamp(min=0).mean(0) if clip == "heads" else (a * g).mean(0).clamp(min=0)
        relevance = relevance + mixed @ relevance
    return t.picture(relevance)


def attention_grad_cam(t, layer=-1, positive=True):
    total = torch.zeros(t.tokens, t.tokens, dtype=torch.float64)
    for a, g in zip(t.A[layer], t.gradients[layer], strict=True):
        for token in t.read:
            total[token] += g[token, t.prefix :].mean() * a[token]
    found = t.picture(total / len(t.A[layer]))
    return found.clamp(min=0) if positive else found


def tam(t, start_layer, steps=20):
    mixed = [a.mean(0) for a in t.A]
    found = torch.zeros(t.tokens, t.tokens, dtype=torch.float64)
    weights = t.feedback(steps)
    for token in t.read:
        state = mixed[-1][token]
        for block in range(t.depth - 2, start_layer - 1, -1):
            state = state @ mixed[block] + state
        found[token] = state * weights[token]
    return t.picture(found)


def bt_h(t, start_layer, steps=20):
    relevance = torch.eye(t.tokens, dtype=torch.float64)
    for a, g in zip(t.A[start_layer:], t.gradients[start_layer:], strict=True):
        importance = torch.stack([(a[h].T @ g[h]).abs().mean() for h in range(len(a))])
        importance = importance / importance.sum()
        relevance = relevance + sum(importance[h] * a[h] for h in range(len(a))) @ relevance
    return t.picture(t.feedback(steps) * relevance)


def bt_t(t, start_layer, steps=20):
    relevance = torch.eye(t.tokens, dtype=torch.float64)
    for block in range(start_layer, t.depth):
        projected = t.V[block] @ t.module.blocks[block].attn.proj.weight.detach().T
        share = projected.norm(dim=1) / t.Z[block].norm(dim=1)
        relevance = relevance + t.A[block].mean(0) @ torch.diag(share) @ relevance
    return t.picture(t.feedback(steps) * relevance.abs())
