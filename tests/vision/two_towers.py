"""Small CLIPs and SigLIPs with random weights, saved as their libraries save real ones."""

import json

import pytest
import torch

WORDS = ["a", "photo", "drawing", "of", "cat", "dog", "owl", "red", "the"]
TOWER = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def enlivened(model):
    """Random weights that are large enough for images, and texts, to differ."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "logit_" not in name:
                weight.add_(0.2 * torch.randn(weight.shape, generator=generator))
    return model.eval()


def tokenizer():
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = {word: number for number, word in enumerate(["<pad>", "<unk>", "<s>", *WORDS, "</s>"])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(token, vocabulary[token]) for token in ("<s>", "</s>")]
    words.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def transformers_model(kind):
    """CLIPModel or SiglipModel for images of 32×32 and texts of up to 12 tokens."""
    transformers = pytest.importorskip("transformers")
    words = tokenizer()
    vision = {"image_size": 32, "patch_size": 8, **TOWER}
    text = {"vocab_size": len(words), "max_position_embeddings": 12, "eos_token_id": words.eos_token_id, **TOWER}
    torch.manual_seed(0)
    if kind == "clip":
        config = transformers.CLIPConfig(
            text_config={**text, "projection_dim": 16},
            vision_config={**vision, "projection_dim": 16},
            projection_dim=16,
        )
        return enlivened(transformers.CLIPModel(config))
    model = transformers.SiglipModel(transformers.SiglipConfig(text_config=text, vision_config=vision))
    with torch.no_grad():
        model.logit_scale.fill_(2.0)
        model.logit_bias.fill_(-3.0)
    return enlivened(model)


def save_transformers(kind, folder):
    """Save a model with its processor and tokenizer; returns the three."""
    transformers = pytest.importorskip("transformers")
    model, words = transformers_model(kind), tokenizer()
    if kind == "clip":
        processor = transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    else:
        processor = transformers.SiglipImageProcessor(size={"height": 32, "width": 32})
    for part in (model, processor, words):
        part.save_pretrained(folder)
    return model, processor, words


def save_open_clip(folder, *, bias=None, **vision):
    """Save a model of open_clip as its own folders are."""
    open_clip = pytest.importorskip("open_clip", reason="open_clip is not installed: pip install open_clip_torch")
    from safetensors.torch import save_file

    config = {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "head_width": 32, "patch_size": 8, **vision},
        "text_cfg": {"context_length": 12, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1},
    }
    if bias is not None:
        config["init_logit_bias"] = bias
    preprocess = {"size": 32, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4], "interpolation": "bicubic"}
    whole = {"model_cfg": config, "preprocess_cfg": {**preprocess, "resize_mode": "shortest"}}
    (folder / "open_clip_config.json").write_text(json.dumps(whole))
    torch.manual_seed(0)
    model = open_clip.create_model(f"local-dir:{folder}", load_weights=False)
    save_file(enlivened(model).state_dict(), folder / "open_clip_model.safetensors")
    return open_clip.create_model_from_pretrained(f"local-dir:{folder}")
