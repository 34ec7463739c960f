"""A small world with known truth, small networks trained on it, and their training.

* :mod:`suffice.zoo.scenes`: the images, made by rule, with a mask for each part; ``open_images("scenes:test[:200]")``.
* :mod:`suffice.zoo.architectures`: seventeen small networks after those of the papers; ``load("zoo/convnext-3-bn")``.
* :mod:`suffice.zoo.variants`: ConvNeXt and Swin with other kernels, windows and normalization, at full size too.
* :mod:`suffice.zoo.training`: how they are trained; ``suffice train``.
"""
