import os, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
def get_bare_model(net):
    if isinstance(net, (nn.DataParallel, DistributedDataParallel)):
        net = net.module
    return net
class SR:
    def __init__(self, opt):
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        self.net_g = DistributedDataParallel(nn.Conv2d(3, 3, 3, padding=1).to(self.device))
        self.cri = nn.L1Loss()
        self.optimizer_g = torch.optim.Adam(self.net_g.parameters())
    def feed_data(self, data):
        self.lq, self.gt = data["lq"].to(self.device), data["gt"].to(self.device)
    def optimize_parameters(self):
        self.optimizer_g.zero_grad()
        self.output = self.net_g(self.lq)
        l_total = self.cri(self.output, self.gt)
        l_total.backward()
        self.optimizer_g.step()
