"""Values that are read now and then, where only an option tells that there is a device."""

import torch.nn as nn

from outside import args, batches, gt_boxes, net, optimizer

gt_boxes = gt_boxes.cuda()
if args.several:
    net = nn.DataParallel(net)
total = 0.0
for step, data in enumerate(batches()):
    first, second = net(gt_boxes)
    loss = first.mean() + second.mean()
    total += loss.item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(second.mean().item())
