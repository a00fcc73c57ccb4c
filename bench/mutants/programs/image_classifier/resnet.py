import torch.nn.functional as F
from torch import Tensor, nn


def conv3x3(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_planes, out_planes, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, in_planes: int, planes: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = conv3x3(in_planes, planes, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or in_planes != planes:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_planes, planes, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(planes),
            )

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + identity)


class ResNet(nn.Module):
    def __init__(self, layers: list[int], planes: int = 8, num_classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv3x3(3, planes, stride=2), nn.BatchNorm2d(planes), nn.ReLU(inplace=True))
        stages = []
        in_planes = planes
        for index, depth in enumerate(layers):
            out_planes = planes * 2**index
            for block in range(depth):
                stride = 2 if block == 0 and index > 0 else 1
                stages.append(BasicBlock(in_planes, out_planes, stride))
                in_planes = out_planes
        self.stages = nn.Sequential(*stages)
        self.fc = nn.Linear(in_planes, num_classes)
        self._init_weights()

    def _init_weights(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = self.stages(self.stem(x))
        return self.fc(x.mean(dim=(2, 3)))


def resnet_small(num_classes: int, planes: int = 8) -> ResNet:
    return ResNet([1, 1, 1], planes=planes, num_classes=num_classes)
