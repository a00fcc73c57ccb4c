"""Many cart-poles at once, in numpy."""

import numpy as np

GRAVITY = 9.8
MASS_CART = 1.0
MASS_POLE = 0.1
HALF_LENGTH = 0.5
FORCE = 10.0
DT = 0.02
X_LIMIT = 2.4
THETA_LIMIT = 12 * np.pi / 180
OBS_SCALE = np.array([1.0, 1.0, 0.2, 1.0], dtype=np.float32)


class VectorCartPole:
    """A step earns 1 in the middle of the track and nothing at its ends. A fallen pole ends an episode,
    `horizon` steps cut it off.

    Environments that are over start again in the same step.
    """

    obs_dim = 4
    n_actions = 2

    def __init__(self, n_envs: int, horizon: int, seed: int) -> None:
        self.n_envs = n_envs
        self.horizon = horizon
        self.rng = np.random.default_rng(seed)
        self.state = self._fresh(n_envs)
        self.age = np.zeros(n_envs, dtype=np.int64)

    def _fresh(self, n: int) -> np.ndarray:
        return self.rng.uniform(-0.05, 0.05, size=(n, 4))

    def observe(self) -> np.ndarray:
        return self.state.astype(np.float32) / OBS_SCALE

    def reset(self) -> np.ndarray:
        self.state = self._fresh(self.n_envs)
        self.age[:] = 0
        return self.observe()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Gives (observation, reward, terminated, truncated, final), `final` being what was seen before a restart."""
        x, x_dot, theta, theta_dot = self.state.T
        force = np.where(actions == 1, FORCE, -FORCE)
        cos, sin = np.cos(theta), np.sin(theta)
        total = MASS_CART + MASS_POLE
        temp = (force + MASS_POLE * HALF_LENGTH * theta_dot**2 * sin) / total
        theta_acc = (GRAVITY * sin - cos * temp) / (HALF_LENGTH * (4.0 / 3.0 - MASS_POLE * cos**2 / total))
        x_acc = temp - MASS_POLE * HALF_LENGTH * theta_acc * cos / total
        rates = np.stack([x_dot, x_acc, theta_dot, theta_acc], axis=1)
        self.state = self.state + DT * rates
        self.age += 1

        place = self.state[:, 0] / X_LIMIT
        reward = np.clip(1.0 - place**2, 0.0, None).astype(np.float32)
        terminated = (np.abs(place) > 1.0) | (np.abs(self.state[:, 2]) > THETA_LIMIT)
        truncated = (self.age >= self.horizon) & ~terminated
        final = self.observe()
        over = terminated | truncated
        if over.any():
            self.state[over] = self._fresh(int(over.sum()))
            self.age[over] = 0
        return self.observe(), reward, terminated, truncated, final

    def state_dict(self) -> dict:
        return {"state": self.state.tolist(), "age": self.age.tolist(), "rng": self.rng.bit_generator.state}

    def load_state_dict(self, saved: dict) -> None:
        self.state = np.array(saved["state"])
        self.age = np.array(saved["age"], dtype=np.int64)
        self.rng.bit_generator.state = saved["rng"]
