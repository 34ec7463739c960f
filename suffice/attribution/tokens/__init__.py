"""What methods for transformers share: attention followed through blocks, and tokens that are left out."""
