from a2c.agent import A2CAgent, AgentConfig
from a2c.env import VectorCartPole
from a2c.policy import ActorCritic
from a2c.rollout import Rollout, collect

__all__ = ["A2CAgent", "ActorCritic", "AgentConfig", "Rollout", "VectorCartPole", "collect"]
