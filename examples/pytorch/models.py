"""Models with random weights, and random data for them: MODELS[name]() gives the model, a function that makes a batch on a device, and
the loss of the model's output and what was wanted."""
import torch
from torch import nn


def normalized(inputs, outputs, size, stride=1):
    return [nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs)]


class Block(nn.Module):
    """ResNet's blocks: the basic one of two convolutions, and the bottleneck of three that widens fourfold."""

    def __init__(self, inputs, width, stride, bottleneck=False):
        super().__init__()
        outputs = 4 * width if bottleneck else width
        if bottleneck:
            body = [*normalized(inputs, width, 1), nn.ReLU(), *normalized(width, width, 3, stride), nn.ReLU(), *normalized(width, outputs, 1)]
        else:
            body = [*normalized(inputs, width, 3, stride), nn.ReLU(), *normalized(width, width, 3)]
        self.body = nn.Sequential(*body)
        self.skip = nn.Sequential() if (inputs, stride) == (outputs, 1) else nn.Sequential(*normalized(inputs, outputs, 1, stride))

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def resnet(depths, bottleneck, batch, side):
    """Of so many blocks of each of the four widths, on images of side x side."""
    layers, inputs = [*normalized(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for number, depth in enumerate(depths):
        for block in range(depth):
            layers.append(Block(inputs, 64 << number, 2 if block == 0 and number > 0 else 1, bottleneck))
            inputs = (64 << number) * (4 if bottleneck else 1)
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))
    return model, lambda device="cpu": images(batch, side, device), nn.functional.cross_entropy


def images(batch, side, device):
    return torch.randn(batch, 3, side, side, device=device), torch.randint(1000, (batch,), device=device)


def transformer(width, layers, heads):
    return nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
                         for _ in range(layers))


class ViT(nn.Module):
    """Of images of 224 x 224 in patches of 16 x 16."""

    def __init__(self, width=768, layers=12, heads=12):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.places, self.first = nn.Parameter(0.02 * torch.randn(197, width)), nn.Parameter(torch.zeros(1, 1, width))
        self.layers, self.norm, self.head = transformer(width, layers, heads), nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, 0]))


class GPT(nn.Module):
    def __init__(self, words, width, layers, heads, length):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = transformer(width, layers, heads)
        self.head = nn.Linear(width, words, bias=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length), persistent=False)

    def forward(self, x):
        x = self.words(x) + self.places.weight
        for layer in self.layers:
            x = layer(x, src_mask=self.mask, is_causal=True)
        return self.head(x)


def gpt(words=8192, width=256, layers=4, heads=4, length=64, batch=2):
    def texts(device="cpu"):
        text = torch.randint(words, (batch, length + 1), device=device)
        return text[:, :-1], text[:, 1:].flatten()

    return GPT(words, width, layers, heads, length), texts, lambda said, wanted: nn.functional.cross_entropy(said.flatten(0, 1), wanted)


MODELS = {
    "resnet18": lambda: resnet((2, 2, 2, 2), False, batch=2, side=64),
    "resnet50": lambda: resnet((3, 4, 6, 3), True, batch=8, side=224),
    "vit-b": lambda: (ViT(), lambda device="cpu": images(8, 224, device), nn.functional.cross_entropy),
    "gpt": gpt,
    "gpt2-small": lambda: gpt(words=50257, width=768, layers=12, heads=12, length=512, batch=2),
}
