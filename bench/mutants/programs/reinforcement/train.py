"""A2C on cart-poles."""

import argparse
import os
import random
from pathlib import Path

import numpy as np
import torch

from a2c import A2CAgent, ActorCritic, AgentConfig, VectorCartPole, collect
from a2c.rollout import evaluate


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/a2c"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--resume", action="store_true")
    run = parser.add_argument_group("run")
    run.add_argument("--updates", type=int, default=120)
    run.add_argument("--n-envs", type=int, default=64)
    run.add_argument("--rollout-steps", type=int, default=16)
    run.add_argument("--horizon", type=int, default=100)
    run.add_argument("--log-every", type=int, default=12)
    run.add_argument("--save-every", type=int, default=60)
    agent = parser.add_argument_group("agent")
    agent.add_argument("--lr", type=float, default=AgentConfig.lr)
    agent.add_argument("--gamma", type=float, default=AgentConfig.gamma)
    agent.add_argument("--entropy-coef", type=float, default=AgentConfig.entropy_coef)
    agent.add_argument("--hidden", type=int, default=64)
    return parser


def save(path: Path, agent: A2CAgent, env: VectorCartPole, update: int, device: torch.device) -> None:
    state = {"agent": agent.state_dict(), "env": env.state_dict(), "update": update, "rng": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda_rng"] = torch.cuda.get_rng_state(device)
    tmp = path.with_suffix(".tmp")
    torch.save(state, tmp)
    os.replace(tmp, path)


def load(path: Path, agent: A2CAgent, env: VectorCartPole, device: torch.device) -> int:
    state = torch.load(path, map_location="cpu", weights_only=True)
    agent.load_state_dict(state["agent"])
    env.load_state_dict(state["env"])
    torch.set_rng_state(state["rng"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda_rng"], device)
    return state["update"]


def main() -> None:
    args = build_parser().parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    device = torch.device(args.device)
    args.out.mkdir(parents=True, exist_ok=True)

    env = VectorCartPole(args.n_envs, args.horizon, seed=args.seed)
    policy = ActorCritic(env.obs_dim, env.n_actions, args.hidden).to(device)
    cfg = AgentConfig(lr=args.lr, gamma=args.gamma, entropy_coef=args.entropy_coef)
    agent = A2CAgent(policy, cfg, args.updates)

    checkpoint = args.out / "agent.pt"
    done = 0
    if args.resume and checkpoint.exists():
        done = load(checkpoint, agent, env, device)
        print(f"resuming after update {done}")

    while done < args.updates:
        stats = agent.update(collect(policy, env, args.rollout_steps, device))
        done += 1
        if done % args.log_every == 0:
            print(
                f"update {done:4d} loss {stats['loss']:+.4f} value {stats['value_loss']:.4f} "
                f"entropy {stats['entropy']:.3f}",
                flush=True,
            )
        if done % args.save_every == 0:
            save(checkpoint, agent, env, done, device)
            score = evaluate(policy, 32, args.horizon, seed=10_001, device=device)
            print(f"update {done:4d} greedy return {score:.1f}", flush=True)

    print(f"val_return: {evaluate(policy, 100, args.horizon, seed=20_001, device=device):.2f}")


if __name__ == "__main__":
    main()
