"""Changes to pictures that leave their class as it was, and mixtures of two; all drawn from torch's random state."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

Pictures = Float[Tensor, "batch channel height width"]
Shares = Float[Tensor, "batch class"]


def cropped(pictures: Pictures, smallest: float) -> Pictures:
    """A random part of every picture, from about `smallest` of it to all, at full size; half of them mirrored.

    A part that would be wider or higher than the picture is cut to it, so some parts are smaller than drawn.
    """
    n, device = len(pictures), pictures.device
    area = smallest + (1 - smallest) * torch.rand(n, device=device)
    stretch = torch.exp((torch.rand(n, device=device) - 0.5) * 0.5)
    width, height = (area.sqrt() * stretch).clamp(max=1), (area.sqrt() / stretch).clamp(max=1)
    mirror = torch.where(torch.rand(n, device=device) < 0.5, -1.0, 1.0)
    places = torch.zeros(n, 2, 3, device=device)
    places[:, 0, 0], places[:, 1, 1] = width * mirror, height
    places[:, 0, 2] = (1 - width) * (2 * torch.rand(n, device=device) - 1)
    places[:, 1, 2] = (1 - height) * (2 * torch.rand(n, device=device) - 1)
    grid = affine_grid(places, list(pictures.shape), align_corners=False)
    return grid_sample(pictures, grid, padding_mode="reflection", align_corners=False)


def recoloured(pictures: Pictures, strength: float) -> Pictures:
    """Brightness, contrast and saturation of every picture changed by up to `strength`; values are from −1 to 1."""
    brightness, contrast, saturation = (
        1 + strength * (2 * torch.rand(len(pictures), 1, 1, 1, device=pictures.device) - 1) for _ in range(3)
    )
    grey = pictures.mean(dim=1, keepdim=True)
    pictures = grey + (pictures - grey) * saturation
    centre = pictures.mean(dim=(1, 2, 3), keepdim=True)
    return (centre + (pictures - centre) * contrast + brightness - 1).clamp(-1, 1)


def mixed(pictures: Pictures, shares: Shares) -> tuple[Pictures, Shares]:
    """Each picture with another: half the batches blended (mixup), half with a rectangle of the other set in (cutmix).

    Reference: Zhang et al., 2018, arXiv:1710.09412; Yun et al., 2019, arXiv:1905.04899. One share for a whole batch.
    """
    # The draws are made on the CPU: a number read from the GPU would hold up the queue of kernels.
    share, which, x, y = torch.rand(4).tolist()
    order = torch.randperm(len(pictures)).to(pictures.device)
    if which < 0.5:
        return torch.lerp(pictures, pictures[order], share), torch.lerp(shares, shares[order], share)
    size = pictures.shape[-1]
    side = round(size * share**0.5)
    left, top = round((size - side) * x), round((size - side) * y)
    rectangle = (..., slice(top, top + side), slice(left, left + side))
    result = pictures.clone()
    result[rectangle] = pictures[order][rectangle]
    return result, torch.lerp(shares, shares[order], side**2 / size**2)
