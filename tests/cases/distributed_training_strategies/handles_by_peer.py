"""Handles that are kept by peer, and waited for one after the other."""

import torch.distributed as dist


def exchange(transfers_by_peer):
    handles = {}
    for peer, transfers in sorted(transfers_by_peer.items()):
        handles[peer] = dist.batch_isend_irecv(transfers)
    for each in handles.values():
        for handle in each:
            handle.wait()


def exchange_and_go_on(transfers_by_peer):
    for _, transfers in sorted(transfers_by_peer.items()):
        dist.batch_isend_irecv(transfers)  # expect: handle-not-waited
