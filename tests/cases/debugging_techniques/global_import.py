"""An import that is declared global afterwards."""

import torch


class Model:
    def __init__(self, network, optimizer, half: bool):
        self.optimizer = optimizer
        if half:
            from apex import amp
            global amp
            network, optimizer = amp.initialize(network, optimizer)
        self.network = network

    def update(self, x):
        loss = self.network(x).mean()
        with amp.scale_loss(loss, self.optimizer) as scaled:
            scaled.backward()
        self.optimizer.step()


model = torch.nn.Linear(2, 2)
Model(model, torch.optim.SGD(model.parameters(), lr=0.1), True).update(torch.zeros(2, 2))
