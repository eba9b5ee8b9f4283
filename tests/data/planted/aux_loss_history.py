"""Autoencoder with a sparsity penalty that is only switched on after a warm-up."""

from collections import defaultdict

import torch
from torch import nn


class SparseAutoencoder(nn.Module):
    def __init__(self, d_in=1024, d_code=4096):
        super().__init__()
        self.encoder = nn.Linear(d_in, d_code)
        self.decoder = nn.Linear(d_code, d_in)

    def forward(self, x):
        code = torch.relu(self.encoder(x))
        return self.decoder(code), code


def sparsity(code, target=0.05):
    rho = torch.sigmoid(code)
    return ((rho - target) ** 2).mean()


def main():
    sae = SparseAutoencoder().cuda()
    opt = torch.optim.Adam(sae.parameters(), lr=1e-3)
    mse = nn.MSELoss()
    warmup_steps = 1000
    history = defaultdict(list)

    for step in range(36):
        activations = torch.randn(4096, 1024, device="cuda")
        recon, code = sae(activations)
        recon_loss = mse(recon, activations)
        sparse_loss = sparsity(code)
        loss = recon_loss
        if step >= warmup_steps:
            loss = loss + 1e-3 * sparse_loss

        opt.zero_grad()
        loss.backward()
        opt.step()

        history["recon"].append(recon_loss.item())
        history["sparsity"].append(sparse_loss)
        if step % 12 == 11:
            print(f"step {step} recon {history['recon'][-1]:.4f}")

    torch.stack(history["sparsity"]).mean()


if __name__ == "__main__":
    main()
