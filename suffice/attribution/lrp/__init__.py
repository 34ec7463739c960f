"""Layer-wise relevance propagation through vision transformers, without rewriting them.

Relevance starts as 1 at the class explained and walks back through the network, each layer handing what it got to its
inputs in proportion to what they contributed. It never becomes a gradient, so all of it is closed form: matrix
products on the inputs of the model's own layers.

* ``rules``: what one layer does with relevance, as functions of tensors alone.
* ``structure``: the parts of a transformer for which there are rules, or why there are none.
* ``walk``: from the head down to the attention of every block.
* ``float64``: the model in float64, since the rules magnify rounding.
"""
