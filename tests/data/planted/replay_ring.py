"""DQN with a bounded replay memory on a batch of simulated Atari environments that live on the GPU."""

import random
from collections import deque

import torch
from torch import nn
from torch.nn import functional

NUM_ENVS = 64
GAMMA = 0.99
device = "cuda"


class QNetwork(nn.Module):
    def __init__(self, actions=6):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(4, 32, 8, stride=4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Linear(64 * 9 * 9, 256), nn.ReLU(), nn.Linear(256, actions))

    def forward(self, x):
        return self.head(self.conv(x))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, state, action, reward, next_state):
        self.memory.append((state, action, reward, next_state))

    def sample(self, batch_size):
        return random.sample(self.memory, min(batch_size, len(self.memory)))


class Env:
    def reset(self):
        return torch.rand(NUM_ENVS, 4, 84, 84, device=device)

    def step(self, action):
        frames = torch.rand(NUM_ENVS, 4, 84, 84, device=device)
        return frames, torch.rand(NUM_ENVS, device=device)


def main():
    random.seed(0)
    policy_net, target_net = QNetwork().to(device), QNetwork().to(device)
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = torch.optim.RMSprop(policy_net.parameters(), lr=1e-4)
    memory, env = ReplayMemory(capacity=60), Env()
    state = env.reset()
    for t in range(160):
        with torch.no_grad():
            action = policy_net(state).argmax(dim=1)
        next_state, reward = env.step(action)
        memory.push(state, action, reward, next_state)
        state = next_state
        if t % 4 == 3:
            for s, a, r, s2 in memory.sample(2):
                with torch.no_grad():
                    target = r + GAMMA * target_net(s2).max(dim=1).values
                q = policy_net(s).gather(1, a.clamp(0, 5).unsqueeze(1)).squeeze(1)
                loss = functional.smooth_l1_loss(q, target) / 2
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        if t % 40 == 39:
            target_net.load_state_dict(policy_net.state_dict())
            print(f"t={t} loss={loss.item():.4f}")


if __name__ == "__main__":
    main()
