"""What methods share that make masks of feature channels: clustering, and masks on the grid of the channels."""
