"""What is kept for backward through lists, setattr, setup_context and annotations."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function


class LabelSmoothCE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, eps=0.1):
        logp = torch.log_softmax(logits, -1)
        n = logits.shape[-1]
        loss = -(1 - eps) * logp.gather(1, target[:, None]).squeeze(1) - eps / n * logp.sum(-1)
        ctx.save_for_backward(logp.exp(), target, n)  # expect: saved-non-tensor
        ctx.eps = eps
        return loss.mean()

    @staticmethod
    def backward(ctx, grad):
        p, target, n = ctx.saved_tensors
        q = torch.full_like(p, ctx.eps / n)
        q.scatter_(1, target[:, None], 1 - ctx.eps + ctx.eps / n)
        return grad * (p - q) / len(p), None, None


class RoIPoolFunction(Function):
    @staticmethod
    def forward(ctx, features, rois, pooled_h, pooled_w, scale):
        batch, channels, height, width = features.size()
        out = features.new_zeros(rois.size(0), channels, pooled_h, pooled_w)
        argmax = torch.zeros(out.shape, dtype=torch.int64, device=out.device)
        for k, roi in enumerate((rois * scale).round().long().tolist()):
            b, x0, y0, x1, y1 = roi
            crop = features[b, :, y0 : y1 + 1, x0 : x1 + 1]
            out[k], argmax[k] = torch.nn.functional.adaptive_max_pool2d(crop, (pooled_h, pooled_w), True)
        ctx.save_for_backward(rois, argmax, features.size())  # expect: saved-non-tensor
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx, grad):
        rois, argmax, shape = ctx.saved_tensors
        grad_in = grad.new_zeros(shape)
        for k in range(len(rois)):
            grad_in[int(rois[k, 0])].view(grad.size(1), -1).scatter_add_(1, argmax[k].flatten(1), grad[k].flatten(1))
        return grad_in, None, None, None, None


@dataclass
class SpikeConfig:
    slope: float = 25.0
    threshold: float = 1.0


class SurrogateSpike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, cfg: SpikeConfig):
        ctx.save_for_backward(v, cfg)  # expect: saved-non-tensor
        return (v > cfg.threshold).float()

    @staticmethod
    def backward(ctx, g):
        v, cfg = ctx.saved_tensors
        return g / (1 + cfg.slope * (v - cfg.threshold).abs()) ** 2, None


class LIF(torch.nn.Module):
    def __init__(self, cfg=SpikeConfig()):
        super().__init__()
        self.cfg = cfg

    def forward(self, xs):
        v = torch.zeros_like(xs[0])
        out = []
        for x in xs:
            v = v * math.exp(-0.1) + x
            s = SurrogateSpike.apply(v, self.cfg)
            v = v - s
            out.append(s)
        return torch.stack(out)


class PowerNorm(torch.autograd.Function):
    @staticmethod
    def forward(x, p, dim):
        return x.abs().pow(p).sum(dim).pow(1 / p)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, p, dim = inputs
        ctx.save_for_backward(x, output, p)  # expect: saved-non-tensor
        ctx.dim = dim

    @staticmethod
    def backward(ctx, g):
        x, out, p = ctx.saved_tensors
        g, out = g.unsqueeze(ctx.dim), out.unsqueeze(ctx.dim)
        return g * x.sign() * (x.abs() / out) ** (p - 1), None, None


def p_norm(x, p=3):
    return PowerNorm.apply(x, p, -1)


class FakeQuant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, bits):
        qmin = -(2 ** (bits - 1))
        qmax = 2 ** (bits - 1) - 1
        scale = float(w.abs().max()) / qmax
        saved = [w, scale]
        ctx.save_for_backward(*saved)  # expect: saved-non-tensor
        ctx.limits = qmin, qmax
        return (w / scale).round().clamp(qmin, qmax) * scale

    @staticmethod
    def backward(ctx, g):
        w, scale = ctx.saved_tensors
        lo, hi = ctx.limits
        inside = (w / scale >= lo) & (w / scale <= hi)
        return g * inside, None


class QConv(torch.nn.Conv2d):
    bits = 4

    def forward(self, x):
        return self._conv_forward(x, FakeQuant.apply(self.weight, self.bits), self.bias)


class Upsample(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor, mode):
        h, w = x.shape[-2:]
        ctx.save_for_backward(torch.tensor([h, w]), mode)  # expect: saved-non-tensor
        ctx.factor = factor
        return nn.functional.interpolate(x, scale_factor=factor, mode=mode)

    @staticmethod
    def backward(ctx, g):
        size, mode = ctx.saved_tensors
        return nn.functional.adaptive_avg_pool2d(g, size.tolist()) * ctx.factor**2, None, None


class Decoder(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.mode = "nearest"
        self.conv = nn.Conv2d(ch, ch, 3, padding=1)

    def forward(self, x):
        return self.conv(Upsample.apply(x, 2, self.mode))


class ChamferFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, gt):
        d = torch.cdist(pred, gt)
        dist, idx = d.min(-1)
        ctx.cache = {"pred": pred, "gt": gt, "idx": idx}  # expect: tensor-on-ctx
        return dist.mean()

    @staticmethod
    def backward(ctx, g):
        pred, gt, idx = ctx.cache["pred"], ctx.cache["gt"], ctx.cache["idx"]
        nearest = gt.gather(1, idx[..., None].expand(-1, -1, 3))
        diff = pred - nearest
        return g * diff / diff.norm(dim=-1, keepdim=True) / idx.numel(), None


class Softplus2(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.beta = beta
        out = torch.log1p(torch.exp(beta * x)) / beta
        ctx.out = out  # expect: tensor-on-ctx
        return out

    @staticmethod
    def backward(ctx, g):
        return g * (1 - torch.exp(-ctx.beta * ctx.out)), None


class CheckpointFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run_function, x, y):
        ctx.run_function = run_function
        ctx.inputs = (x, y)  # expect: tensor-on-ctx
        with torch.no_grad():
            return run_function(x, y)

    @staticmethod
    def backward(ctx, g):
        x, y = (t.detach().requires_grad_() for t in ctx.inputs)
        with torch.enable_grad():
            out = ctx.run_function(x, y)
        torch.autograd.backward(out, g)
        return None, x.grad, y.grad


class SphericalConv(torch.autograd.Function):
    @staticmethod
    def forward(x, weight):
        return F.conv2d(F.pad(x, (1, 1, 0, 0), mode="circular"), weight, padding=(1, 0))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.x, ctx.weight = inputs  # expect: tensor-on-ctx, tensor-on-ctx

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.x, ctx.weight
        xp = F.pad(x, (1, 1, 0, 0), mode="circular")
        gxp = torch.nn.grad.conv2d_input(xp.shape, weight, g, padding=(1, 0))
        gw = torch.nn.grad.conv2d_weight(xp, weight.shape, g, padding=(1, 0))
        gx = gxp[..., 1:-1].clone()
        gx[..., 0] += gxp[..., -1]
        gx[..., -1] += gxp[..., 0]
        return gx, gw


class GumbelTopK(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, k, tau):
        g = -torch.empty_like(logits).exponential_().log()
        probs = torch.softmax((logits + g) / tau, dim=-1)
        idx = probs.topk(k, dim=-1).indices
        mask = torch.zeros_like(probs).scatter_(-1, idx, 1.0)
        setattr(ctx, "logits", logits)  # expect: tensor-on-ctx
        ctx.tau = tau
        return mask

    @staticmethod
    def backward(ctx, grad):
        p = torch.softmax(ctx.logits / ctx.tau, -1)
        inner = (grad * p).sum(-1, keepdim=True)
        return p * (grad - inner) / ctx.tau, None, None


class TimeShift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, mix: torch.Tensor) -> torch.Tensor:
        shifted = torch.nn.functional.pad(x, (0, 0, 1, -1))
        ctx.x = x.detach()  # expect: tensor-on-ctx
        ctx.mix = mix  # expect: tensor-on-ctx
        return x * mix + shifted * (1 - mix)

    @staticmethod
    def backward(ctx, gy: torch.Tensor):
        x, mix = ctx.x, ctx.mix
        gx = gy * mix + torch.nn.functional.pad(gy * (1 - mix), (0, 0, -1, 1))
        gmix = (gy * (x - torch.nn.functional.pad(x, (0, 0, 1, -1)))).sum((0, 1))
        return gx, gmix


class Householder(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, v):
        vn = v / v.norm()
        y = x - 2 * (x @ vn).unsqueeze(-1) * vn
        ctx.saved = [x, v, y]  # expect: tensor-on-ctx
        return y

    @staticmethod
    def backward(ctx, g):
        x, v, y = ctx.saved
        n = v.norm()
        vn = v / n
        gx = g - 2 * (g @ vn).unsqueeze(-1) * vn
        gvn = -2 * ((g @ vn).unsqueeze(-1) * x + (x @ vn).unsqueeze(-1) * g).sum(0)
        return gx, (gvn - (gvn @ vn) * vn) / n
