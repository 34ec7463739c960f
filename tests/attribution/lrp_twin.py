"""Relevance through a transformer once more: one image, float64, every step written out, nothing left out.

All tokens are followed through all blocks, factors of products by autograd, the rollout as a product of full matrices.
"""

import torch


def divided(a, b):
    return torch.where(b == 0, 0.0, a / (b + 1e-9))


class Twin:
    """A forward pass of one image by hand, and the ways back.

    Args:
        module: timm's VisionTransformer or VisionTransformerDistilled, float64.
        x: Normalized image, [3, H, W].
        target: The class.
    """

    def __init__(self, module, x, target):
        self.module, self.target = module, target
        x = x.double()[None]
        self.out = module.norm_pre(module._pos_embed(module.patch_embed(x)))[0].detach()
        self.blocks = [self.forward_block(block, self.out) for block in module.blocks]
        self.final = module.norm(self.out)
        if hasattr(module, "head_dist"):
            self.logits = [module.head(self.final[0]) / 2, module.head_dist(self.final[1]) / 2]
        else:
            self.logits = [module.head(self.final[0])]
        attention = [kept["A"] for kept in self.blocks]
        self.slopes = torch.autograd.grad(sum(self.logits)[target], attention)

    def forward_block(self, block, x):
        tokens, heads = x.shape[0], block.attn.num_heads
        kept = {"x": x, "n1": block.norm1(x)}
        q, k, v = (
            part.reshape(tokens, heads, -1).permute(1, 0, 2) for part in block.attn.qkv(kept["n1"]).chunk(3, dim=1)
        )
        q, k = block.attn.q_norm(q), block.attn.k_norm(k)
        A = torch.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, dim=-1)
        kept |= {"q": q, "k": k, "v": v, "A": A if A.requires_grad else A.requires_grad_()}
        kept["mixed"] = (A @ v).permute(1, 0, 2).reshape(tokens, -1)
        kept["attended"] = block.attn.proj(kept["mixed"])
        kept["middle"] = x + kept["attended"]
        kept["n2"] = block.norm2(kept["middle"])
        kept["hidden"] = block.mlp.act(block.mlp.fc1(kept["n2"]))
        kept["processed"] = block.mlp.fc2(kept["hidden"])
        self.out = kept["middle"] + kept["processed"]
        return kept

    def relevances(self, original_rules):
        """Relevance of the attention of each block, [heads, N, N] each, first to last.

        Args:
            original_rules: Separate denominators and plain sums, as in partial LRP.
        """
        linear = separate_linear if original_rules else shared_linear
        add = plain_add if original_rules else rescaled_add
        module = self.module
        one_hot = torch.zeros_like(self.logits[0])
        one_hot[self.target] = 1.0
        R = torch.zeros_like(self.final)
        if len(self.logits) == 2:
            first, second = add(self.logits[0], self.logits[1], one_hot)
            R[0] = linear(self.final[0], module.head.weight, first)
            R[1] = linear(self.final[1], module.head_dist.weight, second)
        else:
            R[0] = linear(self.final[0], module.head.weight, one_hot)
        found = []
        for block, kept in reversed(list(zip(module.blocks, self.blocks, strict=True))):
            R1, R2 = add(kept["middle"], kept["processed"], R)
            R2 = linear(kept["n2"], block.mlp.fc1.weight, linear(kept["hidden"], block.mlp.fc2.weight, R2))
            R1, R2 = add(kept["x"], kept["attended"], R1 + R2)
            R2 = linear(kept["mixed"], block.attn.proj.weight, R2)
            R2 = R2.reshape(R2.shape[0], block.attn.num_heads, -1).permute(1, 0, 2)
            RA, Rv = (part / 2 for part in product(lambda a, b: a @ b, kept["A"], kept["v"], R2))
            found.append(RA)
            Rq, Rk = (part / 2 for part in product(lambda a, b: a @ b.transpose(1, 2), kept["q"], kept["k"], RA))
            R2 = torch.cat([part.permute(1, 0, 2).flatten(1) for part in (Rq, Rk, Rv)], dim=1)
            R = R1 + linear(kept["n1"], block.attn.qkv.weight, R2)
        self.relevance_of_input = R.detach()
        return [part.detach() for part in reversed(found)]

    def read(self, matrix):
        """The row of the token read, or the mean of both, without the tokens before the patches; [h, w]."""
        rows = matrix[: len(self.logits)].mean(dim=0)
        return rows[self.module.num_prefix_tokens :].reshape(self.module.patch_embed.grid_size)

    def cgw1(self, start_layer=0, row_normalized=False):
        identity = torch.eye(len(self.final), dtype=torch.float64)
        result = identity
        for C, G in list(zip(self.relevances(False), self.slopes, strict=True))[start_layer:]:
            matrix = identity + (G * C).clamp(min=0).mean(dim=0)
            if row_normalized:
                matrix = matrix / matrix.sum(dim=-1, keepdim=True)
            result = matrix @ result
        return self.read(result)

    def partial_lrp(self, original_rules=True, gradient_weighted=False):
        C = self.relevances(original_rules)[-1]
        if gradient_weighted:
            C = C * self.slopes[-1]
        return self.read(C.clamp(min=0).mean(dim=0))


def shared_linear(x, W, R):
    xp, xn, Wp, Wn = x.clamp(min=0), x.clamp(max=0), W.clamp(min=0), W.clamp(max=0)
    S = divided(R, xp @ Wp.T + xn @ Wn.T)
    return xp * (S @ Wp) + xn * (S @ Wn)


def separate_linear(x, W, R):
    xp, xn, Wp, Wn = x.clamp(min=0), x.clamp(max=0), W.clamp(min=0), W.clamp(max=0)
    return xp * (divided(R, xp @ Wp.T) @ Wp) + xn * (divided(R, xn @ Wn.T) @ Wn)


def product(function, a, b, R):
    a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
    Z = function(a, b)
    slopes = torch.autograd.grad(Z, (a, b), divided(R, Z).detach())
    return a.detach() * slopes[0], b.detach() * slopes[1]


def plain_add(a, b, R):
    S = divided(R, a + b)
    return a * S, b * S


def rescaled_add(a, b, R):
    first, second = plain_add(a, b, R)
    sums = first.sum(), second.sum()
    shares = [divided(s.abs(), sums[0].abs() + sums[1].abs()) * R.sum() for s in sums]
    return first * divided(shares[0], sums[0]), second * divided(shares[1], sums[1])
