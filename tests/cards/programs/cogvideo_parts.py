# SPDX-License-Identifier: Apache-2.0
"""The parts of CogVideoX with the settings of its checkpoints, and values that are not set."""
import torch
import torchao.quantization

torchao.quantization.Int4WeightOnlyConfig = type("Int4WeightOnlyConfig", (), {})  # transformers asks a later torchao for the name

from diffusers import AutoencoderKLCogVideoX, CogVideoXTransformer3DModel  # noqa: E402
from transformers import T5Config, T5EncoderModel  # noqa: E402

SIZES = {"2b": dict(num_attention_heads=30, num_layers=30, use_rotary_positional_embeddings=False),
         "5b": dict(num_attention_heads=48, num_layers=42, use_rotary_positional_embeddings=True)}
SCALING = {"2b": 1.15258426, "5b": 0.7}
TEXT = dict(d_model=4096, d_ff=10240, d_kv=64, num_heads=64, num_layers=24, vocab_size=32128, feed_forward_proj="gated-gelu", is_encoder_decoder=False, use_cache=False)


def unset(make, kind):
    with torch.device("meta"):
        model = make()
    return model.to(kind).to_empty(device="cpu").eval()


def text_encoder(kind):
    return unset(lambda: T5EncoderModel(T5Config(**TEXT)), kind)


def transformer(size, kind):
    return unset(lambda: CogVideoXTransformer3DModel(attention_head_dim=64, in_channels=16, out_channels=16, text_embed_dim=4096, time_embed_dim=512, sample_width=90,
                                                     sample_height=60, sample_frames=49, patch_size=2, temporal_compression_ratio=4, max_text_seq_length=226, **SIZES[size]), kind)


def vae(size, kind):
    blocks = dict(down_block_types=("CogVideoXDownBlock3D",) * 4, up_block_types=("CogVideoXUpBlock3D",) * 4, block_out_channels=(128, 256, 256, 512), latent_channels=16,
                  layers_per_block=3, temporal_compression_ratio=4, sample_height=480, sample_width=720, scaling_factor=SCALING[size])
    return unset(lambda: AutoencoderKLCogVideoX(**blocks), kind)
